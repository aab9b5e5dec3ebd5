#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include <google/protobuf/descriptor.h>

#include "weightbridge/v1/cluster.pb.h"
#include "weightbridge/v1/layout.pb.h"
#include "weightbridge/v1/status.pb.h"
#include "weightbridge/v1/worker.pb.h"

#include "tests/support/catch.h"

// The wire contract as text, one line a field, against the committed text in golden/. A number
// that is reused, a field that is renumbered, renamed, retyped or removed changes a line: that
// breaks peers of another version and must not happen. A *new* field adds a line: run this test
// with WB_UPDATE_GOLDEN=1, look at the difference, and commit the text with the .proto file.

namespace wb {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::MethodDescriptor;
using google::protobuf::ServiceDescriptor;

std::string TypeOf(const FieldDescriptor& field) {
  if (field.type() == FieldDescriptor::TYPE_MESSAGE) return field.message_type()->full_name();
  if (field.type() == FieldDescriptor::TYPE_ENUM) return field.enum_type()->full_name();
  return field.type_name();
}

std::string LineOf(const FieldDescriptor& field) {
  std::string line = field.containing_type()->full_name() + " " + std::to_string(field.number()) +
                     " " + field.name() + " ";
  if (field.is_repeated()) line += "repeated ";
  if (field.has_optional_keyword()) line += "optional ";
  line += TypeOf(field);
  if (field.real_containing_oneof() != nullptr) {
    line += " oneof " + field.real_containing_oneof()->name();
  }
  return line + "\n";
}

std::string LinesOf(const EnumDescriptor& type) {
  std::string lines;
  for (int i = 0; i < type.value_count(); ++i) {
    lines += type.full_name() + " " + std::to_string(type.value(i)->number()) + " " +
             type.value(i)->name() + "\n";
  }
  return lines;
}

std::string LinesOf(const Descriptor& type) {
  std::string lines = type.full_name() + "\n";
  for (int i = 0; i < type.field_count(); ++i) lines += LineOf(*type.field(i));
  for (int i = 0; i < type.enum_type_count(); ++i) lines += LinesOf(*type.enum_type(i));
  for (int i = 0; i < type.nested_type_count(); ++i) lines += LinesOf(*type.nested_type(i));
  return lines;
}

std::string LinesOf(const ServiceDescriptor& service) {
  std::string lines;
  for (int i = 0; i < service.method_count(); ++i) {
    const MethodDescriptor& method = *service.method(i);
    lines += method.full_name() + " " + (method.client_streaming() ? "stream " : "") +
             method.input_type()->full_name() + " -> " +
             (method.server_streaming() ? "stream " : "") + method.output_type()->full_name() +
             "\n";
  }
  return lines;
}

std::string LinesOf(const FileDescriptor& file) {
  std::string lines;
  for (int i = 0; i < file.enum_type_count(); ++i) lines += LinesOf(*file.enum_type(i));
  for (int i = 0; i < file.message_type_count(); ++i) lines += LinesOf(*file.message_type(i));
  for (int i = 0; i < file.service_count(); ++i) lines += LinesOf(*file.service(i));
  return lines;
}

void CheckGolden(const FileDescriptor& file, const std::string& name) {
  const std::string path = std::string(WB_GOLDEN_DIR) + "/" + name + ".txt";
  const std::string now = LinesOf(file);
  if (std::getenv("WB_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(path) << now;
    return;
  }
  std::ifstream stream(path);
  REQUIRE(stream.good());
  std::stringstream golden;
  golden << stream.rdbuf();
  CHECK(now == golden.str());
}

TEST_CASE("The field numbers, names and types of the wire are the committed ones", "[proto]") {
  CheckGolden(*weightbridge::v1::Layout::descriptor()->file(), "layout");
  CheckGolden(*weightbridge::v1::JoinRequest::descriptor()->file(), "worker");
  CheckGolden(*weightbridge::v1::ClusterRequest::descriptor()->file(), "cluster");
  CheckGolden(*weightbridge::v1::StatusReply::descriptor()->file(), "status");
}

}  // namespace
}  // namespace wb
