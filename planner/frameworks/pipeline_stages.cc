#include "planner/frameworks/pipeline_stages.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

#include "planner/base/one_line.h"
#include "planner/frameworks/size_checks.h"

namespace wb {
namespace {

constexpr std::size_t kMaxLayoutBytes = 1 << 20;  // written out
constexpr std::int64_t kMaxChunks = 1 << 16;      // of all stages

// From the layers of each chunk, by chunk and stage: [chunk * pp + stage].
PipelineStages InOrder(const std::vector<std::int64_t>& counts, std::int64_t pp) {
  PipelineStages stages(static_cast<std::size_t>(pp));
  std::int64_t first = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    stages[i % stages.size()].push_back({first, counts[i]});
    first += counts[i];
  }
  return stages;
}

// ---- an explicit layout ----

// The number after a '*' at `i`, which moves behind it; 1 where there is none.
std::optional<std::size_t> TimesAt(std::string_view text, std::size_t& i) {
  if (i == text.size() || text[i] != '*') return 1;
  std::size_t times = 0;
  const auto [stop, error] = std::from_chars(text.data() + i + 1, text.data() + text.size(), times);
  if (error != std::errc() || times > kMaxLayoutBytes) return std::nullopt;
  i = static_cast<std::size_t>(stop - text.data());
  return times;
}

// Appends `unit` so often; false where that is too long.
bool Repeat(const std::string& unit, std::size_t times, std::string& out) {
  if (unit.size() * times > kMaxLayoutBytes - out.size()) return false;
  for (std::size_t n = 0; n < times; ++n) out += unit;
  return true;
}

// Writes "t*3" out. nullopt where it is none or too long.
std::optional<std::string> WithoutStars(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::string unit(1, text[i++]);
    const std::optional<std::size_t> times = TimesAt(text, i);
    if (!times.has_value() || !Repeat(unit, *times, out)) return std::nullopt;
  }
  return out;
}

// Writes "(tt|)*2" and "t*3" out. nullopt where it is none or too long.
std::optional<std::string> WrittenOut(std::string_view text) {
  std::string out;
  for (std::size_t open = text.find('('); open != text.npos; open = text.find('(')) {
    const std::size_t close = text.find(')', open);
    if (close == text.npos) return std::nullopt;
    const std::optional<std::string> before = WithoutStars(text.substr(0, open));
    const std::optional<std::string> unit = WithoutStars(text.substr(open + 1, close - open - 1));
    std::size_t end = close + 1;
    const std::optional<std::size_t> times = TimesAt(text, end);
    const bool repeated = end > close + 1 && before.has_value() && unit.has_value();
    if (!repeated || !Repeat(*before, 1, out) || !Repeat(*unit, *times, out)) return std::nullopt;
    text.remove_prefix(end);
  }
  const std::optional<std::string> rest = WithoutStars(text);
  if (!rest.has_value() || !Repeat(*rest, 1, out)) return std::nullopt;
  return out;
}

// Why the layout written out is none of so many layers; nullopt where it is.
std::optional<std::string> LayoutFault(const std::string& written, std::int64_t layers) {
  if (const std::size_t other = written.find_first_not_of("EtL|"); other != written.npos) {
    return absl::StrCat("which has '", OneLine(written.substr(other, 1)),
                        "', want E, t, L and | alone");
  }
  std::string order = written;
  order.erase(std::remove(order.begin(), order.end(), '|'), order.end());
  const auto found = static_cast<std::int64_t>(std::count(order.begin(), order.end(), 't'));
  const std::string wanted =
      absl::StrCat("E", std::string(static_cast<std::size_t>(found), 't'), "L");
  if (order != wanted) return "want E first, L last, each once, and t between";
  if (found != layers) {
    return absl::StrCat("which has ", found, " layers, want num_hidden_layers (", layers, ")");
  }
  return std::nullopt;
}

std::variant<PipelineStages, Refusals> FromLayout(const PipelineSplit& split, std::int64_t layers) {
  const auto refuse = [&](const std::string& why) {
    return Refusals{{"size", "", "",
                     absl::StrCat("pipeline_layout is \"", Excerpt(split.layout), "\", ", why)}};
  };
  if (split.virtual_stages != 1 || split.first_stage_layers != 0 || split.last_stage_layers != 0) {
    return refuse("want it alone: it says virtual_stages, first_ and last_stage_layers itself");
  }
  std::string text = split.layout;
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  const std::optional<std::string> written = WrittenOut(text);
  if (!written.has_value()) {
    return refuse("want repetitions as (tt|)*2 or t*3, and not too many");
  }
  if (const auto fault = LayoutFault(*written, layers); fault.has_value()) return refuse(*fault);
  std::vector<std::int64_t> counts(1, 0);
  for (const char c : *written) {
    if (c == '|') counts.push_back(0);
    if (c == 't') ++counts.back();
  }
  if (split.pp == 1 && counts.size() > 1) {
    return refuse(absl::StrCat("which has ", counts.size(), " stages, want 1 where pp is 1"));
  }
  if (counts.size() % static_cast<std::size_t>(split.pp) != 0) {
    return refuse(absl::StrCat("which has ", counts.size(), " stages, want a multiple of pp (",
                               split.pp, ")"));
  }
  return InOrder(counts, split.pp);
}

// ---- even, but for the first and the last stage ----

// The layers of each stage; empty where they do not divide.
std::vector<std::int64_t> StageCounts(const PipelineSplit& split,
                                      std::int64_t layers,
                                      SizeChecks& checks) {
  const bool first = split.first_stage_layers > 0;
  const bool last = split.last_stage_layers > 0;
  const std::int64_t between = split.pp - (first ? 1 : 0) - (last ? 1 : 0);
  const std::int64_t left = layers - split.first_stage_layers - split.last_stage_layers;
  if (between < 0 || left < 0 || (between == 0 ? left != 0 : left % between != 0)) {
    checks.Refuse(
        "pp", split.pp,
        absl::StrCat("which leaves ", left, " of num_hidden_layers (", layers, ") for ", between,
                     " even stages", first || last ? " beside first_ and last_stage_layers" : "",
                     "; want them to divide, or first_stage_layers, last_stage_layers "
                     "or pipeline_layout"));
    return {};
  }
  std::vector<std::int64_t> counts(static_cast<std::size_t>(split.pp),
                                   between == 0 ? 0 : left / between);
  if (first) counts.front() = split.first_stage_layers;
  if (last) counts.back() = split.last_stage_layers;
  return counts;
}

}  // namespace

std::variant<PipelineStages, Refusals> SplitLayers(const PipelineSplit& split,
                                                   std::int64_t layers) {
  if (!split.layout.empty()) return FromLayout(split, layers);
  SizeChecks checks;
  if (split.pp == 1 && split.virtual_stages > 1) {
    checks.Refuse("virtual_stages", split.virtual_stages,
                  "want 1 where pp is 1: they are of a pipeline of several ranks");
    return checks.refusals();
  }
  if (split.virtual_stages > kMaxChunks / split.pp) {
    checks.Refuse("virtual_stages", split.virtual_stages,
                  absl::StrCat("want at most ", kMaxChunks, " in all ", split.pp, " stages"));
    return checks.refusals();
  }
  std::vector<std::int64_t> stages = StageCounts(split, layers, checks);
  for (std::size_t p = 0; p < stages.size(); ++p) {
    if (!checks.Divides("virtual_stages", split.virtual_stages,
                        absl::StrCat("the layers of stage ", p), stages[p])) {
      break;
    }
  }
  if (!checks.refusals().empty()) return checks.refusals();
  std::vector<std::int64_t> counts;
  for (std::int64_t chunk = 0; chunk < split.virtual_stages; ++chunk) {
    for (const std::int64_t count : stages) counts.push_back(count / split.virtual_stages);
  }
  return InOrder(counts, split.pp);
}

PipelineStages StagesOf(const std::vector<std::int64_t>& counts) {
  return InOrder(counts, static_cast<std::int64_t>(counts.size()));
}

}  // namespace wb
