#include "tests/support/rehearse.h"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "tests/support/time_slack.h"
#include "tests/support/whole_file.h"

namespace wb::test {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds kDeadline{60};

std::vector<RehearsedVersion> VersionsOf(const std::string& out) {
  const nlohmann::json json = nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
  std::vector<RehearsedVersion> versions;
  if (json.is_discarded() || !json.contains("versions")) return versions;
  for (const nlohmann::json& version : json["versions"]) {
    versions.push_back({version.value("version", std::uint64_t{0}),
                        version.value("bytes_planned", std::uint64_t{0}),
                        version.value("bytes_moved", std::uint64_t{0}),
                        version.value("bytes_by_path", std::map<std::string, std::uint64_t>()),
                        version.value("verified_bytes", std::uint64_t{0})});
  }
  return versions;
}

}  // namespace

Rehearsal::Rehearsal(const LayoutFileSpec& file, const RehearseOptions& options) {
  const std::string layout = folder_.path() + "/layout.json";
  const std::string runtime = folder_.path() + "/run";
  std::vector<std::string> argv{WB_WBCTL,
                                "rehearse",
                                layout,
                                "-o",
                                "json",
                                "--versions",
                                std::to_string(options.versions),
                                "--first-version",
                                std::to_string(options.first_version),
                                "--transport",
                                options.transport,
                                "--dump",
                                folder_.path() + "/dump"};
  bool written = WriteWholeFile(layout, file.ToJson()) && fs::create_directory(runtime);
  if (options.checkpoint.empty()) {
    argv.insert(argv.end(), {"--fill", options.fill});
  } else {
    const std::string checkpoint = folder_.path() + "/model.safetensors";
    written = written && WriteWholeFile(checkpoint, options.checkpoint.Bytes());
    argv.insert(argv.end(), {"--checkpoint", checkpoint});
  }
  if (!written) return;
  run_ = RunToEnd(argv, {"XDG_RUNTIME_DIR=" + runtime}, Slack(kDeadline));
  versions_ = VersionsOf(run_.out);
  for (const fs::directory_entry& entry : fs::directory_iterator(runtime)) {
    left_behind_.push_back(entry.path().string());
  }
}

std::string Rehearsal::story() const {
  std::string text = "wbctl rehearse: exit " + std::to_string(run_.exit_code) +
                     (run_.timed_out ? ", killed at the deadline" : "") + "\n" + run_.out +
                     run_.err;
  for (const std::string& path : left_behind_) text += "left behind: " + path + "\n";
  return text;
}

NpyFile Rehearsal::Dumped(const std::string& group,
                          std::int32_t rank,
                          const std::string& param) const {
  const std::string name = group + "-" + std::to_string(rank) + "-" + param + ".npy";
  return NpyFile::Parse(ReadWholeFile(folder_.path() + "/dump/" + name));
}

std::map<std::string, std::string> Rehearsal::Dumps() const {
  return ReadWholeFolder(folder_.path() + "/dump");
}

ProgramEnd PlanFile(const LayoutFileSpec& file) {
  const TempFolder folder;
  const std::string layout = folder.path() + "/layout.json";
  if (!WriteWholeFile(layout, file.ToJson())) return {};
  return RunToEnd({WB_WBCTL, "plan", layout}, {}, Slack(kDeadline));
}

}  // namespace wb::test
