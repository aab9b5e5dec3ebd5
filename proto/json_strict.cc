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

#include "planner/base/utf8.h"
#include "planner/model/layout.h"
#include "proto/door/names.h"

namespace wb {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

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

// What the message's type wants next.
struct Wanted {
  enum class Form : std::uint8_t { kAnything, kScalar, kObject, kMap, kList };
  Form form = Form::kAnything;
  const FieldDescriptor* field = nullptr;  // null for kAnything, and for the whole
};

std::string_view FormName(Wanted::Form form) {
  switch (form) {
    case Wanted::Form::kAnything:
      return "a value";
    case Wanted::Form::kScalar:
      return "one value";
    case Wanted::Form::kObject:
    case Wanted::Form::kMap:
      return "an object";
    case Wanted::Form::kList:
      return "a list";
  }
  return "";
}

// `element`: of a repeated field, not the field itself.
Wanted WantedOf(const FieldDescriptor* field, bool element) {
  if (field == nullptr) return {};
  if (!element && field->is_map()) return {Wanted::Form::kMap, field};
  if (!element && field->is_repeated()) return {Wanted::Form::kList, field};
  const bool message = field->type() == FieldDescriptor::TYPE_MESSAGE;
  return {message ? Wanted::Form::kObject : Wanted::Form::kScalar, field};
}

// Receives the events of one text. Method names are nlohmann's.
class StrictReader {
 public:
  using number_integer_t = nlohmann::json::number_integer_t;
  using number_unsigned_t = nlohmann::json::number_unsigned_t;
  using number_float_t = nlohmann::json::number_float_t;
  using string_t = nlohmann::json::string_t;
  using binary_t = nlohmann::json::binary_t;

  StrictReader(std::string_view json, const Descriptor* type, const char* const& mark)
      : json_(json), type_(type), mark_(mark) {}

  bool null() {
    CountValue();
    Fault(Position(), absl::StrCat(Path(), " is null, want a value or no key"));
    return true;
  }
  bool boolean(bool /*value*/) { return Scalar(); }
  bool number_integer(number_integer_t /*value*/) { return Scalar(); }
  bool number_unsigned(number_unsigned_t /*value*/) { return Scalar(); }
  bool number_float(number_float_t /*value*/, const string_t& /*text*/) { return Scalar(); }
  bool string(string_t& /*value*/) { return Scalar(); }
  bool binary(binary_t& /*value*/) { return Scalar(); }

  bool start_object(std::size_t /*elements*/) {
    if (++objects_ > kMaxJsonObjects) {
      Fault(Position(), absl::StrCat("more than ", kMaxJsonObjects, " objects"), "limit");
      return false;
    }
    const Wanted wanted = Next();
    Frame* frame = Open(wanted, {Wanted::Form::kObject, Wanted::Form::kMap}, "an object");
    if (frame == nullptr) return false;
    if (!frame->typed) return true;
    frame->map = wanted.form == Wanted::Form::kMap;
    frame->message = wanted.field == nullptr ? type_ : wanted.field->message_type();
    if (frame->map) frame->field = frame->message->map_value();
    return true;
  }

  bool key(string_t& name) {
    Frame& frame = frames_[depth_ - 1];
    if (frame.message != nullptr && !frame.map) {
      frame.field = FieldOf(*frame.message, name);
      if (frame.field != nullptr) name = frame.field->name();
    }
    frame.keys.push_back({name, Position()});
    if (frame.message == nullptr || frame.field != nullptr) return true;
    Fault(Position(), absl::StrCat(Path(), " is no field of ", frame.message->name()));
    return true;
  }

  bool end_object() {
    TellRepeated();
    --depth_;
    return true;
  }

  bool start_array(std::size_t /*elements*/) {
    const Wanted wanted = Next();
    Frame* frame = Open(wanted, {Wanted::Form::kList, Wanted::Form::kList}, "a list");
    if (frame == nullptr) return false;
    frame->array = true;
    if (frame->typed) frame->field = wanted.field;
    return true;
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
    reasons.Skip(skipped_);
    if (syntax_error_.empty()) return;
    reasons.Add("json", {}, absl::StrCat("layout file: ", syntax_error_));
  }

 private:
  struct Key {
    std::string name;
    std::size_t position = 0;
  };
  struct Frame {
    bool typed = false;  // it is what the type wants; else anything goes inside
    bool array = false;
    bool map = false;
    const Descriptor* message = nullptr;
    const FieldDescriptor* field = nullptr;  // of the last key, the map's values, the elements
    std::size_t elements = 0;
    std::vector<Key> keys;
  };
  struct FaultAt {
    std::size_t position = 0;
    std::string_view kind;
    std::string text;
  };

  std::size_t Position() const { return static_cast<std::size_t>(mark_ - json_.data()); }

  void CountValue() {
    if (depth_ > 0) ++frames_[depth_ - 1].elements;
  }

  // Counts a value, and tells what it should be.
  Wanted Next() {
    CountValue();
    if (depth_ == 0) {
      return {type_ == nullptr ? Wanted::Form::kAnything : Wanted::Form::kObject, nullptr};
    }
    const Frame& frame = frames_[depth_ - 1];
    return WantedOf(frame.field, frame.array);
  }

  bool Scalar() {
    const Wanted wanted = Next();
    if (wanted.form != Wanted::Form::kScalar) Mismatch(wanted, "one value");
    return true;
  }

  void Mismatch(const Wanted& wanted, std::string_view is) {
    if (wanted.form == Wanted::Form::kAnything) return;
    Fault(Position(),
          absl::StrCat(Path(), " is ", Absl(is), ", want ", Absl(FormName(wanted.form))));
  }

  // The frame of an object or list; null when there is no room for it.
  Frame* Open(const Wanted& wanted, std::array<Wanted::Form, 2> fitting, std::string_view is) {
    const bool fits = wanted.form == fitting[0] || wanted.form == fitting[1];
    if (!fits) Mismatch(wanted, is);
    if (depth_ == kMaxJsonDepth) {
      Fault(Position(), absl::StrCat("more than ", kMaxJsonDepth, " levels of nesting"), "limit");
      return nullptr;
    }
    Frame& frame = frames_[depth_++];
    std::vector<Key> keys = std::move(frame.keys);
    keys.clear();
    frame = Frame{};
    frame.keys = std::move(keys);  // keeps its memory
    frame.typed = fits;
    return &frame;
  }

  static const FieldDescriptor* FieldOf(const Descriptor& message, const std::string& name) {
    const FieldDescriptor* field = message.FindFieldByName(name);
    return field != nullptr ? field : message.FindFieldByCamelcaseName(name);
  }

  // "workers[3].params[0].dtype"
  std::string Path() const {
    std::string path;
    for (std::size_t level = 0; level < depth_; ++level) {
      const Frame& frame = frames_[level];
      if (path.size() > kMaxNameBytes) return absl::StrCat(path, "...");
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
    if (faults_.size() >= kMaxReasons) {
      ++skipped_;
      return;
    }
    faults_.push_back({position, kind, std::move(text)});
  }

  void TellRepeated() {
    std::vector<Key>& keys = frames_[depth_ - 1].keys;
    if (keys.size() < 2) return;
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
  const Descriptor* type_;
  const char* const& mark_;
  std::array<Frame, kMaxJsonDepth> frames_;
  std::size_t depth_ = 0;
  std::size_t objects_ = 0;
  std::vector<FaultAt> faults_;
  std::size_t skipped_ = 0;  // faults beyond kMaxReasons
  std::string syntax_error_;
};

}  // namespace

void CheckStrictJson(std::string_view json, const Descriptor* type, Reasons& reasons) {
  if (json.size() > kMaxJsonBytes) {
    reasons.Add("limit", {},
                absl::StrCat("layout file: ", json.size(), " bytes, want at most ", kMaxJsonBytes));
    return;
  }
  const char* mark = json.data();
  StrictReader reader(json, type, mark);
  nlohmann::json::sax_parse(MarkedIterator(json.data(), &mark),
                            MarkedIterator(json.data() + json.size(), &mark), &reader);
  reader.Tell(reasons);
}

}  // namespace wb
