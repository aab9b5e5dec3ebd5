#include "tests/support/temp_folder.h"

#include <cstdlib>
#include <stdexcept>
#include <system_error>

#include "tests/support/whole_file.h"

namespace wb::test {

TempFolder::TempFolder() : path_((std::filesystem::temp_directory_path() / "wb-XXXXXX").string()) {
  // A folder that cannot be made shows as the first thing that fails in it.
  if (::mkdtemp(path_.data()) == nullptr) path_.clear();
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TempFolder::Write(const std::string& name, const std::string& bytes) const {
  std::filesystem::path file = File(name);
  if (!WriteWholeFile(file, bytes)) throw std::runtime_error("cannot write " + file.string());
  return file;
}

}  // namespace wb::test
