#include "planner/frameworks/size_checks.h"

#include "absl/strings/str_cat.h"

namespace wb {

void SizeChecks::Refuse(const std::string& key, std::int64_t size, const std::string& why) {
  Refuse(key, std::to_string(size), why);
}

void SizeChecks::Refuse(const std::string& key, const std::string& value, const std::string& why) {
  refusals_.push_back({"size", "", "", absl::StrCat(key, " is ", value, ", ", why)});
}

bool SizeChecks::Divides(const std::string& key,
                         std::int64_t size,
                         const std::string& what,
                         std::int64_t count) {
  if (count % size == 0) return true;
  Refuse(key, size, absl::StrCat("want one that divides ", what, " (", count, ")"));
  return false;
}

bool SizeChecks::DividesHeads(const std::string& key,
                              std::int64_t size,
                              const std::string& what,
                              std::int64_t heads,
                              std::int64_t head_rows) {
  if (heads % size == 0) return true;
  const std::int64_t rows = heads * head_rows;
  const std::string have =
      rows % size == 0
          ? absl::StrCat(rows / size, " rows per rank where a head has ", head_rows)
          : absl::StrCat(rows, " rows that do not divide by it, where a head has ", head_rows);
  Refuse(key, size,
         absl::StrCat("which gives ", have, "; want one that divides ", what, " (", heads, ")"));
  return false;
}

}  // namespace wb
