#include "planner/yaml/yaml_file.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <optional>
#include <sstream>

#include <yaml-cpp/eventhandler.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "planner/base/one_line.h"
#include "planner/base/status_macros.h"

namespace wb {
namespace {

constexpr std::size_t kMaxNameBytes = 255;
constexpr std::size_t kMaxReasons = 100;

/// From 1; also for an empty file, whose nodes are nowhere.
int LineOf(const YAML::Mark& mark) {
  return std::max(mark.line, 0) + 1;
}

/// Keeps where the last document that it was told of begins.
class DocumentStart final : public YAML::EventHandler {
 public:
  const YAML::Mark& mark() const { return mark_; }

  void OnDocumentStart(const YAML::Mark& mark) override { mark_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/,
                const std::string& /*tag*/,
                YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/,
                       const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/,
                       YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/,
                  const std::string& /*tag*/,
                  YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}

 private:
  YAML::Mark mark_;
};

/// Where a second document or stray text begins. Not by LoadAll: at a comma after a document's end
/// it reads empty documents for ever.
std::optional<YAML::Mark> SecondDocument(const std::string& yaml) {
  std::istringstream text(yaml);
  YAML::Parser parser(text);
  DocumentStart start;
  if (!parser.HandleNextDocument(start) || !parser.HandleNextDocument(start)) return std::nullopt;
  return start.mark();
}

bool IsAsciiControl(char c) {
  return static_cast<unsigned char>(c) < 0x80U && IsControl(static_cast<unsigned char>(c));
}

/// The line of the first byte that YAML does not allow: yaml-cpp ends a file at some of them.
std::optional<std::size_t> LineOfStray(std::string_view yaml) {
  const auto* const stray = std::find_if(yaml.begin(), yaml.end(), [](char c) {
    return IsAsciiControl(c) && c != '\n' && c != '\t' && c != '\r';
  });
  if (stray == yaml.end()) return std::nullopt;
  return static_cast<std::size_t>(std::count(yaml.begin(), stray, '\n')) + 1;
}

/// A scalar in quotes, or with a tag of its own, is no number or flag, whatever it looks like.
absl::Status CheckPlain(const YAML::Node& value, const std::string& wanted) {
  if (value.Tag() == "?") return absl::OkStatus();
  return Want(value.Scalar(),
              absl::StrCat(wanted, value.Tag() == "!" ? ", without quotes" : ", without a tag"));
}

std::string Below(const std::string& path, const std::string& key) {
  return path.empty() ? key : absl::StrCat(path, ".", key);
}

bool IsSection(const YamlReaders& readers, const std::string& key) {
  const auto below = readers.lower_bound(key + ".");
  return below != readers.end() && below->first.rfind(key + ".", 0) == 0;
}

/// Walks the maps of one call of Walk.
class Walker {
 public:
  Walker(YamlFile& file, std::string root, const YamlReaders& readers, std::string owner)
      : file_(file), root_(std::move(root)), readers_(readers), owner_(std::move(owner)) {}

  void Walk(const YAML::Node& map, const std::string& section) {
    if (!map.IsMap()) {
      const std::string path = section.empty() ? root_ : Below(root_, section);
      return file_.Refuse(map, path.empty() ? "the file" : path, "is no map of keys to values");
    }
    std::set<std::string> seen;
    for (const auto& pair : map) {
      if (file_.full()) return;
      const std::string key = pair.first.IsScalar() ? pair.first.Scalar() : "?";
      const std::string full = Below(section, key);
      if (!seen.insert(key).second) {
        file_.Refuse(pair.first, Below(root_, full), "is there twice");
      } else if (key.find('.') != key.npos) {  // would pass for a key of a section
        RefuseKey(pair.first, full);
      } else {
        Read(pair.first, pair.second, full);
      }
    }
  }

  std::set<std::string> found() && { return std::move(found_); }

 private:
  void Read(const YAML::Node& key, const YAML::Node& value, const std::string& full) {
    if (const auto reader = readers_.find(full); reader != readers_.end()) {
      found_.insert(full);
      const absl::Status read = reader->second(value);
      if (!read.ok()) file_.Refuse(key, Below(root_, full), std::string(read.message()));
      return;
    }
    if (IsSection(readers_, full)) return Walk(value, full);
    RefuseKey(key, full);
  }

  void RefuseKey(const YAML::Node& key, const std::string& full) {
    file_.Refuse(key, Below(root_, full), absl::StrCat("is no key of ", owner_));
  }

  YamlFile& file_;
  const std::string root_;
  const YamlReaders& readers_;
  const std::string owner_;
  std::set<std::string> found_;
};

}  // namespace

void YamlFile::Read(std::string_view text, const std::function<void(const YAML::Node&)>& read) {
  if (text.size() > kMaxBytes) {
    return Add("", absl::StrCat("has ", text.size(), " bytes, want at most ", kMaxBytes));
  }
  if (const std::optional<std::size_t> line = LineOfStray(text); line.has_value()) {
    return Add(absl::StrCat(":", *line), "is no YAML: a control character");
  }
  try {
    const std::string yaml(text);
    if (const std::optional<YAML::Mark> second = SecondDocument(yaml); second.has_value()) {
      return Add(absl::StrCat(":", LineOf(*second)),
                 "a second document or stray text, want one document");
    }
    read(YAML::Load(yaml));
  } catch (const YAML::Exception& error) {
    Add(absl::StrCat(":", LineOf(error.mark)), absl::StrCat("is no YAML: ", Excerpt(error.msg)));
  }
}

std::set<std::string> YamlFile::Walk(const YAML::Node& map,
                                     const std::string& path,
                                     const YamlReaders& readers,
                                     const std::string& owner) {
  Walker walker(*this, path, readers, owner);
  walker.Walk(map, "");
  return std::move(walker).found();
}

void YamlFile::Refuse(const YAML::Node& at, const std::string& path, const std::string& why) {
  Add(absl::StrCat(":", LineOf(at.Mark())), absl::StrCat(Excerpt(path), ": ", why));
}

void YamlFile::Refuse(const std::string& path, const std::string& why) {
  Add("", absl::StrCat(Excerpt(path), ": ", why));
}

void YamlFile::Add(const std::string& where, const std::string& reason) {
  if (full()) return;
  reasons_.push_back(absl::StrCat(OneLine(name_), where, ": ", reason));
  if (!full()) return;
  reasons_.back() = absl::StrCat(OneLine(name_), ": has more reasons to be refused than these");
}

bool YamlFile::full() const {
  return reasons_.size() == kMaxReasons;
}

absl::Status YamlFile::status() const {
  return reasons_.empty() ? absl::OkStatus()
                          : absl::InvalidArgumentError(absl::StrJoin(reasons_, "\n"));
}

absl::Status Want(std::string_view found, std::string_view wanted) {
  return absl::InvalidArgumentError(absl::StrCat("'", Excerpt(found), "', want ",
                                                 absl::string_view(wanted.data(), wanted.size())));
}

absl::StatusOr<std::string> ReadText(const YAML::Node& value) {
  if (value.IsNull()) return absl::InvalidArgumentError("has no value");
  if (!value.IsScalar()) return absl::InvalidArgumentError("is no single value");
  const std::string& text = value.Scalar();
  if (text.empty()) return absl::InvalidArgumentError("is empty");
  if (std::any_of(text.begin(), text.end(), IsAsciiControl)) {
    return Want(text, "printable characters");
  }
  return text;
}

absl::StatusOr<std::uint64_t> ReadInteger(const YAML::Node& value,
                                          std::uint64_t least,
                                          std::uint64_t most) {
  WB_ASSIGN_OR_RETURN(const std::string text, ReadText(value));
  const std::string wanted = absl::StrCat("an integer from ", least, " to ", most);
  WB_RETURN_IF_ERROR(CheckPlain(value, wanted));
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool zeros = text.size() > 1 && text.front() == '0';  // octal to some
  if (zeros || error != std::errc() || stop != end || number < least || number > most) {
    return Want(text, wanted);
  }
  return number;
}

absl::StatusOr<double> ReadDecimal(const YAML::Node& value) {
  constexpr const char* kWanted = "a number from 0.001 to 1000000, as 50 or 12.5";
  WB_ASSIGN_OR_RETURN(const std::string text, ReadText(value));
  WB_RETURN_IF_ERROR(CheckPlain(value, kWanted));
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number, std::chars_format::fixed);
  const bool in_range = number >= 0.001 && number <= 1e6;  // false for NaN
  if (error != std::errc() || stop != end || !in_range) return Want(text, kWanted);
  return number;
}

absl::StatusOr<bool> ReadBool(const YAML::Node& value) {
  WB_ASSIGN_OR_RETURN(const std::string text, ReadText(value));
  WB_RETURN_IF_ERROR(CheckPlain(value, "true or false"));
  if (text != "true" && text != "false") return Want(text, "true or false");
  return text == "true";
}

absl::StatusOr<std::string> ReadOneOf(const YAML::Node& value,
                                      const std::vector<std::string>& choices) {
  WB_ASSIGN_OR_RETURN(std::string text, ReadText(value));
  for (const std::string& choice : choices) {
    if (text == choice) return text;
  }
  return Want(text, absl::StrJoin(choices, ", "));
}

absl::StatusOr<std::string> ReadName(const YAML::Node& value) {
  WB_ASSIGN_OR_RETURN(std::string text, ReadText(value));
  const bool fine = text.find_first_not_of(
                        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                        "0123456789._-") == std::string::npos;
  if (!fine || text.size() > kMaxNameBytes) return Want(text, "[A-Za-z0-9._-]+, at most 255 bytes");
  return text;
}

}  // namespace wb
