#include "daemon/readiness.h"

#include "absl/strings/str_cat.h"

namespace wb {

void Readiness::OnLeaderConnected() {
  {
    const MutexLock lock(mu_);
    connected_ = true;
    Show();
  }
  if (tell_) tell_(absl::StrCat("connected to the leader ", leader_));
  next_->OnLeaderConnected();
}

void Readiness::OnLeaderLost(const absl::Status& why) {
  {
    const MutexLock lock(mu_);
    connected_ = false;
    Show();
  }
  if (tell_) tell_(absl::StrCat("no leader: ", leader_, " is lost: ", why.message()));
  next_->OnLeaderLost(why);
}

}  // namespace wb
