#include "planner/model/describe.h"

#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

#include "planner/model/dtype.h"

namespace wb {

const char* RoleName(Role role) {
  return role == Role::kTrainer ? "TRAINER" : "ROLLOUT";
}

std::string Describe(const Tensor& tensor) {
  const std::string_view dtype = DtypeName(tensor.dtype);
  return absl::StrCat(absl::string_view(dtype.data(), dtype.size()), " [",
                      absl::StrJoin(tensor.shape, ","), "]");
}

}  // namespace wb
