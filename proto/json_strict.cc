#include "proto/json_strict.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "proto/names.h"

namespace wb {
namespace {

// Of what the parser says; it may quote the input.
constexpr std::size_t kMaxParserText = 300;

// Tells how far nlohmann's lexer has read: every copy advances the same mark.
class MarkedIterator {
 public:
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  MarkedIterator(const char* at, const char** mark) : at_(at), mark_(mark) {}
  reference operator*() const { return *at_; }
  MarkedIterator& operator++() {
    *mark_ = ++at_;
    return *this;
  }
  MarkedIterator operator++(int) {
    const MarkedIterator before = *this;
    ++*this;
    return before;
  }
  friend bool operator==(const MarkedIterator& a, const MarkedIterator& b) {
    return a.at_ == b.at_;
  }

 private:
  const char* at_;
  const char** mark_;
};

// Receives the events of one text. Method names are nlohmann's.
class StrictReader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  StrictReader(std::string_view json, const char* const& mark) : json_(json), mark_(mark) {}

  bool null() {
    NextValue();
    Fault(Position(), absl::StrCat(Path(), " is null, want a value or no key"));
    return true;
  }
  bool boolean(bool /*value*/) { return NextValue(); }
  bool number_integer(number_integer_t /*value*/) { return NextValue(); }
  bool number_unsigned(number_unsigned_t /*value*/) { return NextValue(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) { return NextValue(); }
  bool string(string_t& /*value*/) { return NextValue(); }
  bool binary(binary_t& /*value*/) { return NextValue(); }

  bool start_object(std::size_t /*elements*/) {
    NextValue();
    if (++objects_ > kMaxJsonObjects) {
      Fault(Position(), absl::StrCat("more than ", kMaxJsonObjects, " objects"), "limit");
      return false;
    }
    return Open(false);
  }
  bool key(string_t& name) {
    Frame& frame = frames_[depth_ - 1];
    frame.keys.push_back({name, Position()});
    return true;
  }
  bool end_object() {
    TellRepeated();
    --depth_;
    return true;
  }
  bool start_array(std::size_t /*elements*/) {
    NextValue();
    return Open(true);
  }
  bool end_array() {
    --depth_;
    return true;
  }

  bool parse_error(std::size_t /*position*/,
                   const std::string& /*token*/,
                   const nlohmann::json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 5: syntax error ..."
    std::string_view text = error.what();
    const std::size_t tag = text.find("] ");
    if (tag != std::string_view::npos) text.remove_prefix(tag + 2);
    const std::string kept(text.substr(0, kMaxParserText));
    syntax_error_ = Utf8Fault(kept).has_value() ? absl::CEscape(kept) : kept;
    return false;
  }

  // In order of the text.
  void Tell(Reasons& reasons) {
    std::stable_sort(faults_.begin(), faults_.end(),
                     [](const FaultAt& a, const FaultAt& b) { return a.position < b.position; });
    std::size_t line = 1;
    std::size_t line_start = 0;
    std::size_t read = 0;
    for (const FaultAt& fault : faults_) {
      for (; read < fault.position; ++read) {
        if (json_[read] != '\n') continue;
        ++line;
        line_start = read + 1;
      }
      reasons.Add(fault.kind, {},
                  absl::StrCat("layout file: line ", line, ", column ", fault.position - line_start,
                               ": ", fault.text));
    }
    if (syntax_error_.empty()) return;
    reasons.Add("json", {}, absl::StrCat("layout file: ", syntax_error_));
  }

 private:
  struct Key {
    std::string name;
    std::size_t position = 0;
  };
  struct Frame {
    bool array = false;
    std::size_t elements = 0;
    std::vector<Key> keys;
  };
  struct FaultAt {
    std::size_t position = 0;
    std::string_view kind;
    std::string text;
  };

  std::size_t Position() const { return static_cast<std::size_t>(mark_ - json_.data()); }

  bool NextValue() {
    if (depth_ > 0) ++frames_[depth_ - 1].elements;
    return true;
  }

  bool Open(bool array) {
    if (depth_ == kMaxJsonDepth) {
      Fault(Position(), absl::StrCat("more than ", kMaxJsonDepth, " levels of nesting"), "limit");
      return false;
    }
    Frame& frame = frames_[depth_++];
    frame.array = array;
    frame.elements = 0;
    frame.keys.clear();
    return true;
  }

  // "workers[3].params[0].dtype"
  std::string Path() const {
    std::string path;
    for (std::size_t level = 0; level < depth_; ++level) {
      const Frame& frame = frames_[level];
      if (frame.array) {
        absl::StrAppend(&path, "[", frame.elements - 1, "]");
      } else if (!frame.keys.empty()) {
        absl::StrAppend(&path, path.empty() ? "" : ".", Shown(frame.keys.back().name));
      }
    }
    return path.empty() ? "the whole" : path;
  }

  // `position` is the byte after the thing.
  void Fault(std::size_t position, std::string text, std::string_view kind = "json") {
    if (faults_.size() > kMaxReasons) return;
    faults_.push_back({position, kind, std::move(text)});
  }

  // A field may be spelled in two ways. Keys of the maps (objects at the second level) are names.
  static std::string Canonical(std::string_view key, std::size_t depth) {
    return depth != 2 && key == "offsetBytes" ? "offset_bytes" : std::string(key);
  }

  void TellRepeated() {
    std::vector<Key>& keys = frames_[depth_ - 1].keys;
    if (keys.size() < 2) return;
    for (Key& key : keys) key.name = Canonical(key.name, depth_);
    std::stable_sort(keys.begin(), keys.end(),
                     [](const Key& a, const Key& b) { return a.name < b.name; });
    for (std::size_t i = 1; i < keys.size(); ++i) {
      if (keys[i].name != keys[i - 1].name) continue;
      std::swap(keys[i], keys.back());  // Path() ends with the last key
      Fault(keys.back().position, absl::StrCat(Path(), " is there twice, want each key once"));
      std::swap(keys[i], keys.back());
    }
  }

  std::string_view json_;
  const char* const& mark_;
  std::array<Frame, kMaxJsonDepth> frames_;
  std::size_t depth_ = 0;
  std::size_t objects_ = 0;
  std::vector<FaultAt> faults_;
  std::string syntax_error_;
};

}  // namespace

void CheckStrictJson(std::string_view json, Reasons& reasons) {
  if (json.size() > kMaxJsonBytes) {
    reasons.Add("limit", {},
                absl::StrCat("layout file: ", json.size(), " bytes, want at most ", kMaxJsonBytes));
    return;
  }
  const char* mark = json.data();
  StrictReader reader(json, mark);
  nlohmann::json::sax_parse(MarkedIterator(json.data(), &mark),
                            MarkedIterator(json.data() + json.size(), &mark), &reader);
  reader.Tell(reasons);
}

}  // namespace wb
