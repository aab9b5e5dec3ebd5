#include "tests/support/temp_folder.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace wb::test {

TempFolder::TempFolder() : path_((std::filesystem::temp_directory_path() / "wb-XXXXXX").string()) {
  // A folder that cannot be made shows as the first thing that fails in it.
  if (::mkdtemp(path_.data()) == nullptr) path_.clear();
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

}  // namespace wb::test
