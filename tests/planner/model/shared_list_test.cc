#include "planner/model/shared_list.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace wb {
namespace {

using Words = SharedList<std::string>;

TEST_CASE("copies share their elements until one is edited, which changes no other", "[model]") {
  const Words first{"a", "b"};
  Words second = first;
  CHECK(second.SharesWith(first));
  second.Edit().push_back("c");
  CHECK_FALSE(second.SharesWith(first));
  CHECK(first.items() == std::vector<std::string>{"a", "b"});
  CHECK(second.items() == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("an owner that is alone edits its elements where they are", "[model]") {
  Words words{"a"};
  const std::string* where = words.data();
  words.Edit()[0] = "b";
  CHECK(words.data() == where);
  CHECK(words.front() == "b");
}

TEST_CASE("equal elements are equal, shared or not, and none are none", "[model]") {
  CHECK(Words{"a"} == Words{"a"});
  CHECK_FALSE(Words{"a"} == Words{"b"});
  Words emptied{"a"};
  emptied.Edit().clear();
  CHECK(emptied == Words());
  CHECK(Words().begin() == Words().end());
  CHECK(Words(std::vector<std::string>()).SharesWith(Words()));
}

}  // namespace
}  // namespace wb
