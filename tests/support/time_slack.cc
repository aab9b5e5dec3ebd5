#include "tests/support/time_slack.h"

#include <cstdlib>
#include <string>

namespace wb::test {

std::chrono::milliseconds Slack(std::chrono::milliseconds bound) {
  const char* given = std::getenv("WB_TIME_SLACK");
  if (given == nullptr || *given == '\0') return bound;
  return bound * std::stoi(given);
}

}  // namespace wb::test
