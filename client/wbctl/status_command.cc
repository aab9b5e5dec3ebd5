#include "client/wbctl/status_command.h"

#include <cstdlib>
#include <iostream>
#include <memory>
#include <utility>

#include <grpcpp/client_context.h>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "weightbridge/v1/status.grpc.pb.h"

#include "client/wbctl/json_text.h"
#include "client/wbctl/status_text.h"
#include "proto/v1.h"

namespace wb {
namespace {

/// Where a daemon of this user listens when its configuration does not say otherwise.
std::string DefaultDaemon() {
  const char* user = std::getenv("XDG_RUNTIME_DIR");  // NOLINT(concurrency-mt-unsafe): one thread
  const std::string base = user == nullptr || *user == '\0' ? "/run" : user;
  return absl::StrCat("unix:", base, "/weightbridge/control.sock");
}

/// What a refusal without a word of it most often means.
const char* HintFor(const DaemonAddress& address, const std::string& error) {
  const bool ended =
      absl::StrContains(error, "Socket closed") || absl::StrContains(error, "Connection reset");
  if (!ended) return "";
  return address.tls_cert.empty() ? " (does it want TLS? --tls-cert, --tls-key, --tls-ca)"
                                  : " (it may not take our certificate: its log says why)";
}

/// Never empty: some of gRPC's own have a code only.
std::string ReasonOf(const grpc::Status& status) {
  if (!status.error_message().empty()) return status.error_message();
  return absl::StatusCodeToString(static_cast<absl::StatusCode>(status.error_code()));
}

/// Calls `method` of the daemon and prints what it replies.
template <typename Request, typename Reply>
ExitCode Ask(const StatusOptions& options,
             grpc::Status (v1::StatusService::Stub::*method)(grpc::ClientContext*,
                                                             const Request&,
                                                             Reply*),
             const Request& request,
             std::ostream& out) {
  const absl::StatusOr<std::shared_ptr<grpc::Channel>> channel = Dial(options.address);
  if (!channel.ok()) {
    PrintFailure(channel.status());
    return ExitCode::kUsage;
  }
  const std::unique_ptr<v1::StatusService::Stub> stub = v1::StatusService::NewStub(*channel);
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + options.timeout);
  Reply reply;
  const grpc::Status status = (stub.get()->*method)(&context, request, &reply);
  if (!status.ok()) {
    return PrintFailure(absl::UnavailableError(
        absl::StrCat("daemon at ", options.address.daemon, ": ", ReasonOf(status),
                     HintFor(options.address, status.error_message()))));
  }
  if (options.output == OutputFormat::kJson) {
    out << JsonText(ToJson(reply), 2) << '\n';
  } else {
    out << ToTable(reply);
  }
  return FinishOutput(out, std::cerr);
}

void AddStatusCommand(CLI::App& app,
                      ExitCode& exit,
                      StatusQuestion question,
                      std::pair<const char*, const char*> name_and_help) {
  const auto options = std::make_shared<StatusOptions>();
  options->question = question;
  DaemonAddress& address = options->address;
  address.daemon = DefaultDaemon();
  CLI::App* command = app.add_subcommand(name_and_help.first, name_and_help.second);
  command->add_option("--daemon", address.daemon, "the daemon to ask")
      ->option_text("unix:PATH|HOST:PORT [" + address.daemon + "]");
  command->add_option("--tls-cert", address.tls_cert, "our certificate, to ask over TCP")
      ->option_text("FILE");
  command->add_option("--tls-key", address.tls_key, "its key")->option_text("FILE");
  command->add_option("--tls-ca", address.tls_ca, "the cluster's CA")->option_text("FILE");
  command->add_option("--tls-name", address.tls_name, "the name that its certificate must be for")
      ->option_text("NAME [HOST]");
  AddOutputOption(*command, options->output);
  if (question != StatusQuestion::kStatus) {
    command->add_option("--job", options->job, "of this job only");
  }
  if (question == StatusQuestion::kVersions) {
    command->add_option("--last", options->last, "the newest N only");
  }
  if (question == StatusQuestion::kRefusals) {
    command->add_option("--limit", options->limit, "the first N only");
  }
  command->callback([options, &exit] { exit = RunStatus(*options, std::cout); });
}

}  // namespace

ExitCode RunStatus(const StatusOptions& options, std::ostream& out) {
  switch (options.question) {
    case StatusQuestion::kStatus:
      return Ask(options, &v1::StatusService::Stub::GetStatus, v1::StatusRequest(), out);
    case StatusQuestion::kWorkers: {
      v1::WorkersRequest request;
      request.set_job(options.job);
      return Ask(options, &v1::StatusService::Stub::ListWorkers, request, out);
    }
    case StatusQuestion::kVersions: {
      v1::VersionsRequest request;
      request.set_job(options.job);
      request.set_last(options.last);
      return Ask(options, &v1::StatusService::Stub::ListVersions, request, out);
    }
    case StatusQuestion::kRefusals: {
      v1::RefusalsRequest request;
      request.set_job(options.job);
      request.set_limit(options.limit);
      return Ask(options, &v1::StatusService::Stub::ListRefusals, request, out);
    }
  }
  return ExitCode::kFailed;
}

void AddStatusCommands(CLI::App& app, ExitCode& exit) {
  AddStatusCommand(app, exit, StatusQuestion::kStatus, {"status", "a daemon's state"});
  AddStatusCommand(app, exit, StatusQuestion::kWorkers,
                   {"workers", "the workers that the leader knows"});
  AddStatusCommand(app, exit, StatusQuestion::kVersions,
                   {"versions", "the versions and their deliveries, from the leader"});
  AddStatusCommand(app, exit, StatusQuestion::kRefusals,
                   {"refusals",
                    "every reason why the newest version has no plan, or none for a "
                    "group, from the leader"});
}

}  // namespace wb
