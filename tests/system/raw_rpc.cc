#include "tests/system/raw_rpc.h"

#include <chrono>

#include <grpcpp/client_context.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/support/byte_buffer.h>

#include "tests/support/time_slack.h"

namespace wb::test {
namespace {

std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  if (!buffer.Dump(&slices).ok()) return text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

}  // namespace

RawReply CallRaw(const std::shared_ptr<grpc::Channel>& channel,
                 const std::string& method,
                 const std::string& request) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + Slack(std::chrono::seconds(5)));
  grpc::CompletionQueue queue;
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(&context, method, &queue);
  RawReply reply;
  call->StartCall(nullptr);
  const bool started = next();
  const grpc::Slice slice(request);
  if (started) {
    call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
    next();
    grpc::ByteBuffer answer;
    call->Read(&answer, nullptr);
    if (next()) reply.bytes = TextOf(answer);
  }
  call->Finish(&reply.status, nullptr);
  next();
  queue.Shutdown();
  while (next()) {
  }
  return reply;
}

}  // namespace wb::test
