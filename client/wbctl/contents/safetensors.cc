#include "client/wbctl/contents/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_set>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

#include "planner/base/checked_math.h"
#include "planner/model/layout.h"

namespace wb {
namespace {

constexpr std::uint64_t kLengthBytes = 8;
constexpr std::string_view kMetadataKey = "__metadata__";
constexpr char kKind[] = "checkpoint";

struct DtypeName {
  std::string_view name;
  Dtype dtype;
};
constexpr std::array<DtypeName, 12> kDtypes{{{"F64", Dtype::kFp64},
                                             {"F32", Dtype::kFp32},
                                             {"F16", Dtype::kFp16},
                                             {"BF16", Dtype::kBf16},
                                             {"F8_E4M3", Dtype::kFp8E4m3},
                                             {"F8_E5M2", Dtype::kFp8E5m2},
                                             {"I64", Dtype::kInt64},
                                             {"I32", Dtype::kInt32},
                                             {"I16", Dtype::kInt16},
                                             {"I8", Dtype::kInt8},
                                             {"U8", Dtype::kUint8},
                                             {"BOOL", Dtype::kBool}}};

/// A tensor as the header's JSON states it, nothing checked but the kinds of the values.
struct RawEntry {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<std::uint64_t>> shape;
  std::optional<std::vector<std::uint64_t>> offsets;
};

/// Reads {name: {"dtype": .., "shape": [..], "data_offsets": [..]}, "__metadata__": {..}} event by
/// event, so that a header costs its own size and no deep or wide value is ever built. Stops at
/// the first thing that does not belong there and says where.
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<RawEntry> entries;
  std::string error;

  bool start_object(std::size_t /*elements*/) override {
    if (place_ == Place::kStart) return Go(Place::kTop);
    if (place_ == Place::kTop) {
      fields_.clear();
      if (key_ == kMetadataKey) return Go(Place::kMetadata);
      entries.push_back({.name = key_, .dtype = {}, .shape = {}, .offsets = {}});
      return Go(Place::kEntry);
    }
    return Unexpected("an object");
  }

  bool end_object() override { return Go(place_ == Place::kTop ? Place::kEnd : Place::kTop); }

  bool key(std::string& name) override {
    std::unordered_set<std::string>& seen = place_ == Place::kTop ? names_ : fields_;
    if (!seen.insert(name).second)
      return Fail(absl::StrCat(Where(), "key ", name, " occurs twice"));
    if (place_ == Place::kTop && name.size() > kMaxNameBytes) {
      return Fail(
          absl::StrCat("a tensor name of ", name.size(), " bytes, want at most ", kMaxNameBytes));
    }
    if (place_ == Place::kTop && names_.size() > kMaxTensors) {
      return Fail(absl::StrCat("more than ", kMaxTensors, " tensors"));
    }
    (place_ == Place::kTop ? key_ : field_) = name;
    return place_ != Place::kEntry || name == "dtype" || name == "shape" ||
           name == "data_offsets" || Fail(absl::StrCat(Where(), "unknown key ", name));
  }

  bool start_array(std::size_t /*elements*/) override {
    if (place_ != Place::kEntry || field_ == "dtype") return Unexpected("a list");
    (field_ == "shape" ? entries.back().shape : entries.back().offsets).emplace();
    return Go(field_ == "shape" ? Place::kShape : Place::kOffsets);
  }

  bool end_array() override { return Go(Place::kEntry); }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ == Place::kShape) return Append(*entries.back().shape, value, kMaxNdim);
    if (place_ == Place::kOffsets) return Append(*entries.back().offsets, value, 2);
    return Unexpected(absl::StrCat(value));
  }

  bool string(std::string& value) override {
    if (place_ == Place::kMetadata) return true;
    if (place_ != Place::kEntry || field_ != "dtype") return Unexpected("a string");
    entries.back().dtype = value;
    return true;
  }

  bool number_integer(std::int64_t value) override { return Unexpected(absl::StrCat(value)); }
  bool number_float(double /*value*/, const std::string& text) override { return Unexpected(text); }
  bool null() override { return Unexpected("null"); }
  bool boolean(bool value) override { return Unexpected(value ? "true" : "false"); }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return Unexpected("bytes"); }

  bool parse_error(std::size_t position,
                   const std::string& /*last_token*/,
                   const nlohmann::json::exception& /*why*/) override {
    return Fail(absl::StrCat("byte ", position, " of the header is not JSON"));
  }

 private:
  enum class Place : std::uint8_t { kStart, kTop, kMetadata, kEntry, kShape, kOffsets, kEnd };

  bool Go(Place place) {
    place_ = place;
    return true;
  }
  bool Fail(std::string text) {
    error = std::move(text);
    return false;
  }
  bool Append(std::vector<std::uint64_t>& list, std::uint64_t value, std::size_t most) {
    if (list.size() == most) {
      return Fail(absl::StrCat(Where(), "more than ", most, " numbers"));
    }
    list.push_back(value);
    return true;
  }
  bool Unexpected(const std::string& what) {
    const char* want = "an object of tensors";
    if (place_ == Place::kTop) want = "an object for each tensor";
    if (place_ == Place::kMetadata) want = "strings only";
    if (place_ == Place::kShape || place_ == Place::kOffsets) want = "whole numbers >= 0";
    if (place_ == Place::kEntry) want = field_ == "dtype" ? "a string" : "a list of numbers";
    return Fail(absl::StrCat(Where(), what, " found, want ", want));
  }
  std::string Where() const {
    switch (place_) {
      case Place::kStart:
      case Place::kEnd:
        return "header: ";
      case Place::kTop:
        return key_.empty() ? "header: " : absl::StrCat("header, at ", key_, ": ");
      case Place::kMetadata:
        return absl::StrCat(std::string(kMetadataKey), ": ");
      case Place::kEntry:
      case Place::kShape:
      case Place::kOffsets:
        break;
    }
    return absl::StrCat("tensor ", key_, field_.empty() ? "" : ", ", field_, ": ");
  }

  Place place_ = Place::kStart;
  std::string key_;
  std::string field_;
  std::unordered_set<std::string> names_;
  std::unordered_set<std::string> fields_;
};

/// Collects the reasons against one file.
class Reasons {
 public:
  explicit Reasons(const std::string& file) : file_(file) {}
  void Add(const std::string& tensor, const std::string& text) {
    list_.push_back({kKind, tensor, "", absl::StrCat(file_, ": ", text)});
  }
  bool empty() const { return list_.empty(); }
  Refusals Take() { return std::move(list_); }

 private:
  const std::string& file_;
  Refusals list_;
};

/// Bytes of a tensor of that shape; nothing when the number does not fit 63 bits.
std::optional<std::uint64_t> TensorBytes(const Index& shape, Dtype dtype) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t bytes = DtypeBytes(dtype);
  for (const std::int64_t extent : shape) {
    const absl::StatusOr<std::int64_t> product = CheckedMul(bytes, extent);
    if (!product.ok()) return std::nullopt;
    bytes = *product;
  }
  return static_cast<std::uint64_t>(bytes);
}

std::string Range(std::uint64_t begin, std::uint64_t end) {
  return absl::StrCat("[", begin, ", ", end, ")");
}

/// Adds what is wrong with the fields of one tensor, or appends the tensor.
void CheckEntry(const RawEntry& raw,
                std::uint64_t data_bytes,
                Reasons& reasons,
                std::vector<SafetensorsEntry>& entries) {
  const auto refuse = [&](const std::string& text) {
    reasons.Add(raw.name, absl::StrCat("tensor ", raw.name, ": ", text));
  };
  if (!raw.dtype || !raw.shape || !raw.offsets) {
    return refuse("has no dtype, shape or data_offsets, want all three");
  }
  const auto* const known = std::find_if(kDtypes.begin(), kDtypes.end(),
                                         [&](const DtypeName& d) { return d.name == *raw.dtype; });
  if (known == kDtypes.end()) {
    return refuse(absl::StrCat(
        "dtype ", *raw.dtype, " is unknown, want one of ",
        absl::StrJoin(kDtypes, " ",
                      [](std::string* out, const DtypeName& d) { out->append(d.name); })));
  }
  SafetensorsEntry entry{.name = raw.name, .dtype = known->dtype, .shape = {}};
  for (const std::uint64_t extent : *raw.shape) {
    if (extent > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      return refuse(absl::StrCat("extent ", extent, " does not fit 63 bits"));
    }
    entry.shape.push_back(static_cast<std::int64_t>(extent));
  }
  const std::optional<std::uint64_t> bytes = TensorBytes(entry.shape, entry.dtype);
  const std::string shape = absl::StrCat("shape [", absl::StrJoin(entry.shape, ","), "]");
  if (!bytes) return refuse(absl::StrCat(shape, " has more bytes than fit 63 bits"));
  if (raw.offsets->size() != 2) {
    return refuse(absl::StrCat("data_offsets hold ", raw.offsets->size(), " numbers, want 2"));
  }
  entry.begin = raw.offsets->at(0);
  entry.end = raw.offsets->at(1);
  const std::string offsets = absl::StrCat("data_offsets ", Range(entry.begin, entry.end));
  if (entry.begin > entry.end) return refuse(absl::StrCat(offsets, " end before they begin"));
  if (entry.end > data_bytes) {
    return refuse(absl::StrCat(offsets, " are out of range: the file holds ", data_bytes,
                               " bytes of data; is it truncated?"));
  }
  if (entry.end - entry.begin != *bytes) {
    return refuse(absl::StrCat(offsets, " are ", entry.end - entry.begin, " bytes, want ", *bytes,
                               " for ", *raw.dtype, " and ", shape));
  }
  entries.push_back(std::move(entry));
}

/// Adds every overlap and hole; `entries` are ordered by offset.
void CheckTiling(const std::vector<SafetensorsEntry>& entries,
                 std::uint64_t data_bytes,
                 Reasons& reasons) {
  std::uint64_t covered = 0;
  const SafetensorsEntry* last = nullptr;  // the one that reaches `covered`
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin < covered) {
      reasons.Add(entry.name, absl::StrCat("tensor ", entry.name, ": data_offsets ",
                                           Range(entry.begin, entry.end), " overlap those of ",
                                           last->name, ", ", Range(last->begin, last->end)));
    }
    if (entry.begin > covered) {
      reasons.Add(entry.name, absl::StrCat("bytes ", Range(covered, entry.begin), " before tensor ",
                                           entry.name, " belong to no tensor"));
    }
    if (entry.end > covered || last == nullptr) {
      covered = std::max(covered, entry.end);
      last = &entry;
    }
  }
  if (covered < data_bytes) {
    reasons.Add("", absl::StrCat("bytes ", Range(covered, data_bytes),
                                 " at the end of the data belong to no tensor"));
  }
}

std::uint64_t LittleEndian64(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) {
    value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  }
  return value;
}

/// The length of the header, or why there is none.
absl::StatusOr<std::uint64_t> HeaderBytes(std::span<const std::byte> bytes) {
  if (bytes.size() < kLengthBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the file has ", bytes.size(),
                     " bytes, want the 8 bytes of the header's length: truncated"));
  }
  const std::uint64_t length = LittleEndian64(bytes);
  if (length > kMaxSafetensorsHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the header is ", length, " bytes long, want at most ", kMaxSafetensorsHeaderBytes));
  }
  if (length > bytes.size() - kLengthBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the header is ", length, " bytes long, but only ",
                     bytes.size() - kLengthBytes, " bytes follow its length: truncated"));
  }
  return length;
}

}  // namespace

std::variant<std::vector<SafetensorsEntry>, Refusals> ParseSafetensorsHeader(
    std::string_view header, std::uint64_t data_bytes, const std::string& file) {
  Reasons reasons(file);
  if (header.empty() || header.front() != '{') {
    reasons.Add("", "the header does not begin with '{'");
    return reasons.Take();
  }
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(header, &reader)) {
    reasons.Add("", reader.error);
    return reasons.Take();
  }
  std::vector<SafetensorsEntry> entries;
  entries.reserve(reader.entries.size());
  for (const RawEntry& raw : reader.entries) CheckEntry(raw, data_bytes, reasons, entries);
  std::stable_sort(entries.begin(), entries.end(),
                   [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
                     return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                   });
  // Holes where a refused tensor would lie are no reasons of their own.
  if (reasons.empty()) CheckTiling(entries, data_bytes, reasons);
  if (!reasons.empty()) return reasons.Take();
  return entries;
}

SafetensorsFile::SafetensorsFile(std::filesystem::path path,
                                 MappedFile map,
                                 std::uint64_t head_bytes,
                                 std::vector<SafetensorsEntry> entries)
    : path_(std::move(path)),
      map_(std::move(map)),
      head_bytes_(head_bytes),
      entries_(std::move(entries)) {}

std::variant<SafetensorsFile, Refusals> SafetensorsFile::Open(const std::filesystem::path& path) {
  const std::string name = path.string();
  absl::StatusOr<MappedFile> map = MappedFile::Open(path);
  if (!map.ok()) return Refusals{{kKind, "", "", std::string(map.status().message())}};
  const std::span<const std::byte> bytes = map->bytes();
  const absl::StatusOr<std::uint64_t> length = HeaderBytes(bytes);
  if (!length.ok()) {
    return Refusals{{kKind, "", "", absl::StrCat(name, ": ", length.status().message())}};
  }
  const std::span<const std::byte> header = bytes.subspan(kLengthBytes, *length);
  const std::uint64_t head_bytes = kLengthBytes + *length;
  std::variant<std::vector<SafetensorsEntry>, Refusals> entries = ParseSafetensorsHeader(
      std::string_view(reinterpret_cast<const char*>(header.data()), header.size()),
      bytes.size() - head_bytes, name);
  if (Refusals* refusals = std::get_if<Refusals>(&entries)) return std::move(*refusals);
  return SafetensorsFile(path, *std::move(map), head_bytes,
                         std::move(std::get<std::vector<SafetensorsEntry>>(entries)));
}

}  // namespace wb
