#include "planner/frameworks/json_reader.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

#include "planner/base/one_line.h"

namespace wb {
namespace {

using Json = nlohmann::json;
using Event = Json::parse_event_t;

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr int kMaxDepth = 32;  // what walks a value calls itself for each level

// Notes keys that an object has twice, of which nlohmann keeps the last, and leaves out what is
// nested too deep.
class Checks {
 public:
  bool operator()(int depth, Event event, const Json& parsed) {
    const bool opens = event == Event::object_start || event == Event::array_start;
    too_deep_ = too_deep_ || (opens && depth >= kMaxDepth);
    if (too_deep_) return false;
    if (event == Event::object_start) open_.emplace_back();
    if (event == Event::object_end) open_.pop_back();
    if (event == Event::key) {
      const auto& name = parsed.get_ref<const std::string&>();
      if (!open_.back().insert(name).second) twice_.insert(name);
    }
    return true;
  }
  bool too_deep() const { return too_deep_; }
  const std::set<std::string>& twice() const { return twice_; }

 private:
  bool too_deep_ = false;
  std::vector<std::set<std::string>> open_;
  std::set<std::string> twice_;
};

std::string Shown(const Json& value) {
  return Excerpt(value.dump(-1, ' ', true, Json::error_handler_t::replace));
}

}  // namespace

JsonReader::JsonReader(std::string_view json, std::string file)
    : file_(std::move(file)), object_(Json::object()) {
  Parse(json);
}

void JsonReader::Parse(std::string_view json) {
  if (json.size() > kMaxBytes) {
    return Add(absl::StrCat("has ", json.size(), " bytes, want at most ", kMaxBytes));
  }
  if (const std::size_t zero = json.find('\0'); zero != json.npos) {  // nlohmann ends there
    return Add(absl::StrCat("is no JSON at byte ", zero + 1));
  }
  Checks checks;
  try {
    Json parsed = Json::parse(json.begin(), json.end(), std::ref(checks));
    if (checks.too_deep()) {
      Add(absl::StrCat("is nested deeper than ", kMaxDepth, " levels, want at most so many"));
    } else if (parsed.is_object()) {
      object_ = std::move(parsed);
    } else {
      Add(absl::StrCat("is ", Shown(parsed), ", want a JSON object"));
    }
  } catch (const Json::parse_error& error) {
    Add(absl::StrCat("is no JSON at byte ", error.byte));
  }
  for (const std::string& key : checks.twice()) {
    Add(absl::StrCat(Excerpt(key), " is there twice, want each key once"));
  }
}

bool JsonReader::Lacks(const std::string& key) const {
  const auto found = object_.find(key);
  return found == object_.end() || found->is_null();
}

void JsonReader::Add(const std::string& text) {
  refusals_.push_back({"model", "", "", absl::StrCat(file_, ": ", text)});
}

void JsonReader::Refuse(const std::string& key, const std::string& wanted) {
  const auto found = object_.find(key);
  const std::string what = found == object_.end() ? "missing" : Shown(*found);
  Add(absl::StrCat(key, " is ", what, ", want ", wanted));
}

std::int64_t JsonReader::Integer(const std::string& key,
                                 std::int64_t least,
                                 std::int64_t most,
                                 std::optional<std::int64_t> fallback) {
  if (Lacks(key) && fallback.has_value()) return *fallback;
  if (!Lacks(key) && object_[key].is_number_integer()) {
    const Json& value = object_[key];
    const bool fits = !value.is_number_unsigned() || value.get<std::uint64_t>() >> 63 == 0;
    const auto number = fits ? value.get<std::int64_t>() : most;
    if (fits && number >= least && number <= most) return number;
  }
  Refuse(key, absl::StrCat("an integer from ", least, " to ", most));
  return least;
}

std::int64_t JsonReader::IntegerOrNull(const std::string& key,
                                       std::int64_t least,
                                       std::int64_t most,
                                       std::int64_t none) {
  if (object_.contains(key) && object_[key].is_null()) return none;
  return Integer(key, least, most);
}

bool JsonReader::Flag(const std::string& key, std::optional<bool> fallback) {
  if (Lacks(key) && fallback.has_value()) return *fallback;
  if (!Lacks(key) && object_[key].is_boolean()) return object_[key].get<bool>();
  Refuse(key, "true or false");
  return false;
}

std::string JsonReader::Text(const std::string& key) {
  std::string text;
  if (!Lacks(key) && object_[key].is_string()) text = object_[key].get<std::string>();
  if (text.empty()) Refuse(key, "a text");
  return text;
}

std::string JsonReader::OnlyText(const std::string& key) {
  if (!Lacks(key)) {
    const Json& value = object_[key];
    if (value.is_array() && value.size() == 1 && value[0].is_string()) {
      return value[0].get<std::string>();
    }
  }
  Refuse(key, "a list of one text");
  return "";
}

std::vector<std::int64_t> JsonReader::Indices(const std::string& key, std::int64_t end) {
  std::vector<std::int64_t> indices;
  if (Lacks(key)) return indices;
  const Json& value = object_[key];
  bool fine = value.is_array();
  for (std::size_t i = 0; fine && i < value.size(); ++i) {
    fine = value[i].is_number_unsigned() &&
           value[i].get<std::uint64_t>() < static_cast<std::uint64_t>(end);
    if (fine) indices.push_back(value[i].get<std::int64_t>());
  }
  if (!fine) Refuse(key, absl::StrCat("a list of integers from 0 below ", end));
  return indices;
}

}  // namespace wb
