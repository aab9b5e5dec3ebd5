#include "tests/system/failures/held_leader.h"

#include <memory>
#include <variant>

namespace wb::test {
namespace {

/// Of a message that can be held.
struct Named {
  std::string kind;   // "": it cannot
  AttemptId attempt;  // none: the message is of no attempt
};

struct NameUp {
  Named operator()(const RegisterWorker& /*message*/) const { return {"register_worker", {}}; }
  Named operator()(const AttemptPrepared& message) const { return {"prepared", message.attempt}; }
  Named operator()(const AttemptStaged& message) const { return {"staged", message.attempt}; }
  Named operator()(const AttemptCommitted& message) const { return {"committed", message.attempt}; }
  template <typename Other>
  Named operator()(const Other& /*message*/) const {
    return {};
  }
};

struct NameDown {
  Named operator()(const PrepareAttempt& message) const { return {"prepare", message.attempt}; }
  Named operator()(const GoAttempt& message) const { return {"go", message.attempt}; }
  Named operator()(const CommitAttempt& message) const { return {"commit", message.attempt}; }
  template <typename Other>
  Named operator()(const Other& /*message*/) const {
    return {};
  }
};

}  // namespace

bool HeldLeader::Holds(const std::string& kind, AttemptId attempt) const {
  const auto hold = holds_.find(kind);
  if (hold == holds_.end()) return false;
  if (hold->second.empty()) return true;
  const auto group = groups_.find(attempt);
  return group != groups_.end() && group->second == hold->second;
}

void HeldLeader::Keep(const std::string& kind, std::function<void()> go_on) {
  held_.push_back(std::move(go_on));
  reached_(kind);
}

void HeldLeader::Release() {
  holds_.clear();
  for (const std::function<void()>& go_on : std::exchange(held_, {})) go_on();
}

void HeldLeader::OnLeaderLost(const absl::Status& why) {
  holds_.clear();
  held_.clear();
  groups_.clear();
  coordinator_->OnLeaderLost(why);
}

void HeldLeader::Send(ToLeader message) {
  if (std::holds_alternative<UnregisterWorker>(message) && holds_.contains("register_worker")) {
    // Not before its session's registration.
    held_.emplace_back([this, message = std::move(message)] { link_->Send(message); });
    return;
  }
  const Named named = std::visit(NameUp{}, message);
  if (!Holds(named.kind, named.attempt)) return link_->Send(std::move(message));
  Keep(named.kind, [this, message = std::move(message)] { link_->Send(message); });
}

void HeldLeader::OnLeaderMessage(FromLeader message) {
  if (const auto* prepare = std::get_if<PrepareAttempt>(&message); prepare != nullptr) {
    groups_[prepare->attempt] = prepare->group;
  }
  const Named named = std::visit(NameDown{}, message);
  if (!Holds(named.kind, named.attempt)) return coordinator_->OnLeaderMessage(std::move(message));
  Keep(named.kind,
       [this, message = std::move(message)] { coordinator_->OnLeaderMessage(message); });
}

}  // namespace wb::test
