#include "client/wbctl/contents/checkpoint.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

#include "client/wbctl/process/mapped_file.h"

namespace wb {
namespace {

namespace fs = std::filesystem;

constexpr char kIndexSuffix[] = ".safetensors.index.json";
constexpr char kFileSuffix[] = ".safetensors";
constexpr std::size_t kMaxIndexBytes = std::size_t{1} << 30;

Refusals Refuse(const fs::path& path, const std::string& text) {
  return {{"checkpoint", "", "", absl::StrCat(path.string(), ": ", text)}};
}

/// The files of a checkpoint, and where its index says that each tensor is (if it has one).
struct FileList {
  std::vector<fs::path> files;
  std::map<std::string, std::string> weight_map;  // tensor -> file name
  bool sharded = true;
};

std::variant<FileList, Refusals> ReadIndex(const fs::path& path) {
  const absl::StatusOr<MappedFile> map = MappedFile::Open(path);
  if (!map.ok()) return Refusals{{"checkpoint", "", "", std::string(map.status().message())}};
  if (map->bytes().size() > kMaxIndexBytes) return Refuse(path, "the index is larger than 1 GiB");
  const auto* text = reinterpret_cast<const char*>(map->bytes().data());
  const nlohmann::json index =
      nlohmann::json::parse(text, text + map->bytes().size(), nullptr, /*allow_exceptions=*/false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    return Refuse(path, "has no object \"weight_map\"");
  }
  FileList list;
  std::set<std::string> names;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    if (!file.is_string()) return Refuse(path, absl::StrCat("tensor ", tensor, " names no file"));
    const auto& name = file.get_ref<const std::string&>();
    if (name.empty() || name.find('/') != std::string::npos || name == "..") {
      return Refuse(path, absl::StrCat("tensor ", tensor, " is in file \"", name,
                                       "\", want a plain file name"));
    }
    names.insert(name);
    list.weight_map[tensor] = name;
  }
  for (const std::string& name : names) list.files.push_back(path.parent_path() / name);
  return list;
}

std::variant<FileList, Refusals> ListFolder(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> files;
  std::vector<fs::path> indexes;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (absl::EndsWith(name, kIndexSuffix)) indexes.push_back(it->path());
    if (absl::EndsWith(name, kFileSuffix)) files.push_back(it->path());
  }
  if (error) return Refuse(folder, error.message());
  if (indexes.size() > 1) {
    return Refuse(folder, "holds several *.safetensors.index.json; name the one that is meant");
  }
  if (indexes.size() == 1) return ReadIndex(indexes.front());
  if (files.empty()) return Refuse(folder, "holds no *.safetensors");
  std::sort(files.begin(), files.end());
  return FileList{.files = std::move(files), .weight_map = {}};
}

std::variant<FileList, Refusals> ListFiles(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return ListFolder(path);
  if (absl::EndsWith(path.filename().string(), kIndexSuffix)) return ReadIndex(path);
  return FileList{.files = {path}, .weight_map = {}, .sharded = false};
}

void Append(Refusals& to, Refusals from) {
  to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

/// Every tensor is in the file that the index names, and no other tensor is there.
void CheckAgainstIndex(const FileList& list, const Checkpoint& checkpoint, Refusals& refusals) {
  if (list.weight_map.empty()) return;
  for (const Checkpoint::Entry& entry : checkpoint.entries()) {
    const fs::path& path = checkpoint.files()[entry.file].path();
    const auto named = list.weight_map.find(entry.tensor.name);
    if (named == list.weight_map.end() || named->second != path.filename().string()) {
      refusals.push_back({"checkpoint", entry.tensor.name, "",
                          absl::StrCat(path.string(), ": tensor ", entry.tensor.name,
                                       " is here, the index says otherwise")});
    }
  }
  for (const auto& [tensor, file] : list.weight_map) {
    if (checkpoint.Find(tensor) != nullptr) continue;
    refusals.push_back({"checkpoint", tensor, "",
                        absl::StrCat("tensor ", tensor, " is missing from ", file,
                                     ", where the index says it is")});
  }
}

}  // namespace

const Checkpoint::Entry* Checkpoint::Find(std::string_view name) const {
  const auto at = std::lower_bound(
      entries_.begin(), entries_.end(), name,
      [](const Entry& entry, std::string_view wanted) { return entry.tensor.name < wanted; });
  return at != entries_.end() && at->tensor.name == name ? &*at : nullptr;
}

std::variant<Checkpoint, Refusals> Checkpoint::Open(const fs::path& path) {
  std::variant<FileList, Refusals> listed = ListFiles(path);
  if (Refusals* refusals = std::get_if<Refusals>(&listed)) return std::move(*refusals);
  const FileList& list = std::get<FileList>(listed);

  Checkpoint checkpoint;
  checkpoint.sharded_ = list.sharded;
  Refusals refusals;
  for (const fs::path& file : list.files) {
    std::variant<SafetensorsFile, Refusals> opened = SafetensorsFile::Open(file);
    if (Refusals* why = std::get_if<Refusals>(&opened)) {
      Append(refusals, std::move(*why));
      continue;
    }
    checkpoint.files_.push_back(std::move(std::get<SafetensorsFile>(opened)));
  }
  if (!refusals.empty()) return refusals;

  for (std::size_t file = 0; file < checkpoint.files_.size(); ++file) {
    const std::vector<SafetensorsEntry>& entries = checkpoint.files_[file].entries();
    for (std::size_t index = 0; index < entries.size(); ++index) {
      Index shape = entries[index].shape;
      if (shape.empty()) shape.push_back(1);
      checkpoint.entries_.push_back({Tensor{.name = entries[index].name,
                                            .dtype = entries[index].dtype,
                                            .shape = std::move(shape)},
                                     file, index});
    }
  }
  std::vector<Entry>& all = checkpoint.entries_;
  std::sort(all.begin(), all.end(),
            [](const Entry& a, const Entry& b) { return a.tensor.name < b.tensor.name; });
  for (std::size_t i = 1; i < all.size(); ++i) {
    if (all[i].tensor.name != all[i - 1].tensor.name) continue;
    refusals.push_back({"checkpoint", all[i].tensor.name, "",
                        absl::StrCat("tensor ", all[i].tensor.name, " is in both ",
                                     checkpoint.files_[all[i - 1].file].path().string(), " and ",
                                     checkpoint.files_[all[i].file].path().string())});
  }
  CheckAgainstIndex(list, checkpoint, refusals);
  if (!refusals.empty()) return refusals;
  return checkpoint;
}

}  // namespace wb
