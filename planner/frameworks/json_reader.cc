#include "planner/frameworks/json_reader.h"

#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace wb {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMaxShown = 80;

// Notes keys that an object has twice; nlohmann keeps the last of them.
class DuplicateKeys {
 public:
  bool operator()(int /*depth*/, Json::parse_event_t event, const Json& parsed) {
    if (event == Json::parse_event_t::object_start) open_.emplace_back();
    if (event == Json::parse_event_t::object_end) open_.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!open_.back().insert(key).second) found_.insert(key);
    }
    return true;
  }
  const std::set<std::string>& found() const { return found_; }

 private:
  std::vector<std::set<std::string>> open_;
  std::set<std::string> found_;
};

std::string Shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kMaxShown) text = absl::StrCat(text.substr(0, kMaxShown), "...");
  return text;
}

}  // namespace

JsonReader::JsonReader(std::string_view json, std::string file)
    : file_(std::move(file)), object_(Json::object()) {
  DuplicateKeys duplicates;
  try {
    Json parsed = Json::parse(json.begin(), json.end(), std::ref(duplicates));
    if (parsed.is_object()) {
      object_ = std::move(parsed);
    } else {
      Add(absl::StrCat("is ", Shown(parsed), ", want a JSON object"));
    }
  } catch (const Json::parse_error& error) {
    Add(absl::StrCat("is no JSON at byte ", error.byte));
  }
  for (const std::string& key : duplicates.found()) {
    Add(absl::StrCat(key, " is there twice, want each key once"));
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
