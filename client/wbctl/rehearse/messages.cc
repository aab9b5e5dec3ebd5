#include "client/wbctl/rehearse/messages.h"

#include <array>
#include <functional>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"

#include "client/wbctl/json_text.h"

namespace wb {
namespace {

using Json = nlohmann::json;

constexpr std::array<const char*, 7> kStepNames{"join", "prepare", "move", "check",
                                                "dump", "export",  "leave"};
constexpr std::array<const char*, 3> kFillNames{"hash", "row", "index"};
// Five mismatches with two names of 1 KiB each and an error fit 64 KiB, even escaped twofold.
constexpr std::size_t kMaxErrorBytes = std::size_t{16} * 1024;

template <std::size_t kCount>
std::size_t NumberOf(const std::array<const char*, kCount>& names, const Json& json) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (json.get_ref<const std::string&>() == names[i]) return i;
  }
  // Caught where the message is read, as the library's own errors are.
  throw std::invalid_argument("unknown name " + json.dump());
}

/// Both ends are this program: a message that does not fit is a fault of it, told as one.
template <typename T>
absl::StatusOr<T> Read(const std::string& text, const std::function<T(const Json&)>& read) {
  try {
    return read(Json::parse(text));
  } catch (const std::exception& why) {
    return absl::InvalidArgumentError(absl::StrCat("control message \"", text, "\": ", why.what()));
  }
}

Mismatch MismatchFromJson(const Json& json) {
  const auto index = json.at("index").get<std::vector<std::int64_t>>();
  return {.param = json.at("param"),
          .tensor = json.at("tensor"),
          .index = Index(index.begin(), index.end()),
          .got = json.at("got"),
          .wanted = json.at("wanted")};
}

Json ToJsonValue(const Mismatch& mismatch) {
  return {{"param", mismatch.param},
          {"tensor", mismatch.tensor},
          {"index", std::vector<std::int64_t>(mismatch.index.begin(), mismatch.index.end())},
          {"got", mismatch.got},
          {"wanted", mismatch.wanted}};
}

}  // namespace

const char* StepName(Step step) {
  return kStepNames.at(static_cast<std::size_t>(step));
}

std::string ToJson(const WorkerSpec& spec) {
  return JsonText(Json{{"layout", spec.layout},
                       {"socket", spec.socket},
                       {"world_size", spec.world_size},
                       {"timeout_ms", spec.timeout_ms},
                       {"fill", kFillNames.at(static_cast<std::size_t>(spec.fill))},
                       {"checkpoint", spec.checkpoint},
                       {"ties", spec.ties},
                       {"flip", spec.flip},
                       {"snapshot", spec.snapshot}});
}

std::string ToJson(const Order& order) {
  return JsonText(
      Json{{"step", StepName(order.step)}, {"version", order.version}, {"paths", order.paths}});
}

std::string ToJson(const StepReport& report) {
  Json first = Json::array();
  for (const Mismatch& mismatch : report.check.first) first.push_back(ToJsonValue(mismatch));
  return JsonText(Json{{"step", StepName(report.step)},
                       {"error", report.error.substr(0, kMaxErrorBytes)},
                       {"element_bytes", report.check.element_bytes},
                       {"hole_bytes", report.check.hole_bytes},
                       {"mismatches", report.check.mismatches},
                       {"first", std::move(first)}});
}

absl::StatusOr<WorkerSpec> WorkerSpecFromJson(const std::string& text) {
  return Read<WorkerSpec>(text, [](const Json& json) {
    return WorkerSpec{.layout = json.at("layout"),
                      .socket = json.at("socket"),
                      .world_size = json.at("world_size"),
                      .timeout_ms = json.at("timeout_ms"),
                      .fill = static_cast<Fill>(NumberOf(kFillNames, json.at("fill"))),
                      .checkpoint = json.at("checkpoint"),
                      .ties = json.at("ties"),
                      .flip = json.at("flip"),
                      .snapshot = json.at("snapshot")};
  });
}

absl::StatusOr<Order> OrderFromJson(const std::string& text) {
  return Read<Order>(text, [](const Json& json) {
    return Order{.step = static_cast<Step>(NumberOf(kStepNames, json.at("step"))),
                 .version = json.at("version"),
                 .paths = json.at("paths")};
  });
}

absl::StatusOr<StepReport> StepReportFromJson(const std::string& text) {
  return Read<StepReport>(text, [](const Json& json) {
    StepReport report{.step = static_cast<Step>(NumberOf(kStepNames, json.at("step"))),
                      .error = json.at("error"),
                      .check = {.element_bytes = json.at("element_bytes"),
                                .hole_bytes = json.at("hole_bytes"),
                                .mismatches = json.at("mismatches"),
                                .first = {}}};
    for (const Json& mismatch : json.at("first")) {
      report.check.first.push_back(MismatchFromJson(mismatch));
    }
    return report;
  });
}

}  // namespace wb
