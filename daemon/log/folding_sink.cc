#include "daemon/log/folding_sink.h"

namespace wb {

FoldingSink::~FoldingSink() {
  const MutexLock lock(mu_);
  Tell(repeated_.TakeAll());
}

void FoldingSink::log(const spdlog::details::log_msg& message) {
  const bool folded = message.level == spdlog::level::warn || message.level == spdlog::level::err;
  if (!folded) return to_->log(message);
  const RepeatedLines::Clock::time_point now = RepeatedLines::Clock::now();
  const MutexLock lock(mu_);
  Tell(repeated_.TakeOver(now));
  if (repeated_.Passes({message.payload.data(), message.payload.size()}, now)) to_->log(message);
}

void FoldingSink::flush() {
  {
    const MutexLock lock(mu_);
    Tell(repeated_.TakeOver(RepeatedLines::Clock::now()));
  }
  to_->flush();
}

void FoldingSink::Tell(const std::vector<std::string>& summaries) {
  for (const std::string& summary : summaries) {
    to_->log(spdlog::details::log_msg("", spdlog::level::warn, summary));
  }
}

}  // namespace wb
