#include "daemon/rpc/cluster/layout_intake.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

#include "daemon/rpc/cluster/parts.h"
#include "daemon/rpc/sha256.h"
#include "daemon/state/members.h"
#include "planner/base/status_macros.h"
#include "planner/model/memory_bytes.h"
#include "proto/convert.h"

namespace wb {
namespace {

std::string Hex(const std::string& sha256) {
  return absl::BytesToHexString(absl::string_view(sha256).substr(0, 8));
}

/// "engine0/1: contents 0123456789abcdef: why".
absl::Status Named(const RegisterWorker& call, const absl::Status& why) {
  return {why.code(), absl::StrCat(call.registration->layout.name.ToString(), ": contents ",
                                   Hex(call.contents.sha256), ": ", why.message())};
}

}  // namespace

LayoutIntake::LayoutIntake(IntakeLimits limits, IntakeSinks sinks)
    : limits_(limits), sinks_(std::move(sinks)) {}

std::uint64_t LayoutIntake::stale_parts() const {
  const MutexLock lock(mu_);
  return stale_parts_;
}

absl::Status LayoutIntake::CheckOffer(PeerId peer, const RegisterWorker& call) const {
  if (call.contents.bytes > limits_.contents_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat(call.contents.bytes, " bytes, limits.message_bytes of the leader allows ",
                     limits_.contents_bytes));
  }
  std::size_t waiting = 0;  // of this daemon
  bool twice = false;
  for (const auto& [sha256, arriving] : arriving_) {
    for (const Waiter& waiter : arriving.waiters) {
      if (waiter.peer != peer) continue;
      ++waiting;
      twice = twice || waiter.call.session == call.session;
    }
    if (sha256 == call.contents.sha256 && arriving.bytes != call.contents.bytes) {
      return absl::InvalidArgumentError(absl::StrCat(call.contents.bytes,
                                                     " bytes, another daemon offers ",
                                                     arriving.bytes, " under the same digest"));
    }
  }
  if (twice) return absl::AlreadyExistsError("the session is being registered already");
  if (waiting < kMaxSessions) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      waiting, " workers of this daemon wait for their contents already, the most allowed"));
}

void LayoutIntake::Register(PeerId peer, RegisterWorker call) {
  const MutexLock lock(mu_);
  if (const auto contents = Find(call.contents.sha256); contents != nullptr) {
    return Admit(peer, std::move(call), *contents);
  }
  if (const absl::Status status = CheckOffer(peer, call); !status.ok()) {
    return sinks_.refused(peer, {call.session, Named(call, status)});
  }
  Wait(peer, std::move(call));
}

void LayoutIntake::Wait(PeerId peer, RegisterWorker call) {
  const std::string sha256 = call.contents.sha256;
  const auto [arriving, first] = arriving_.try_emplace(sha256);
  if (first) {
    arriving->second.bytes = call.contents.bytes;
    arriving->second.sender = peer;
  }
  arriving->second.waiters.push_back({peer, std::move(call)});
  if (first) sinks_.want(peer, sha256);
}

void LayoutIntake::Take(PeerId peer, const v1::ContentsPart& part) {
  std::string contents;
  std::shared_ptr<const Registration> identity;
  {
    const MutexLock lock(mu_);
    const auto found = arriving_.find(part.sha256());
    if (found == arriving_.end() || found->second.sender != peer || found->second.checking) {
      ++stale_parts_;
      return;
    }
    Arriving& arriving = found->second;
    absl::Status status = AddPart(part.offset(), part.data(), arriving.bytes, arriving.data);
    if (status.ok() && arriving.data.size() < arriving.bytes) return;
    if (status.ok() && Sha256(arriving.data) != part.sha256()) {
      status = absl::InvalidArgumentError(
          absl::StrCat("its parts have digest ", Hex(Sha256(arriving.data))));
    }
    if (!status.ok()) return SenderFailed(found, status);
    arriving.checking = true;
    contents = std::exchange(arriving.data, {});
    identity = arriving.waiters.front().call.registration;
  }
  // The checks take their time: others register meanwhile.
  std::variant<Registration, Refusals> checked = RegistrationFromContents(*identity, contents);
  const MutexLock lock(mu_);
  Finish(part.sha256(), std::move(checked));
}

void LayoutIntake::Finish(const std::string& sha256, std::variant<Registration, Refusals> checked) {
  const auto found = arriving_.find(sha256);
  Arriving arriving;
  if (found != arriving_.end()) {
    arriving = std::move(found->second);
    arriving_.erase(found);
  }
  if (const auto* refusals = std::get_if<Refusals>(&checked)) {
    const absl::Status why = ToStatus(*refusals);
    for (const Waiter& waiter : arriving.waiters) {
      sinks_.refused(waiter.peer, {waiter.call.session, Named(waiter.call, why)});
    }
    return;
  }
  auto contents = std::make_shared<const Registration>(std::get<Registration>(std::move(checked)));
  for (Waiter& waiter : arriving.waiters) {
    Admit(waiter.peer, std::move(waiter.call), *contents);
  }
  const std::uint64_t bytes = MemoryBytes(*contents);
  Keep({sha256, bytes, std::move(contents)});
}

void LayoutIntake::Admit(PeerId peer, RegisterWorker call, const Registration& contents) {
  if (call.registration->layout.role != contents.layout.role) {
    return sinks_.refused(
        peer, {call.session, Named(call, absl::InvalidArgumentError("are of the other role"))});
  }
  Registration whole = contents;
  whole.job = call.registration->job;
  whole.layout.name = call.registration->layout.name;
  whole.layout.node = call.registration->layout.node;
  call.registration = std::make_shared<const Registration>(std::move(whole));
  sinks_.registered(peer, std::move(call));
}

std::shared_ptr<const Registration> LayoutIntake::Find(const std::string& sha256) {
  const auto found = std::find_if(kept_.begin(), kept_.end(),
                                  [&](const Kept& kept) { return kept.sha256 == sha256; });
  if (found == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found);
  return found->contents;
}

void LayoutIntake::Keep(Kept kept) {
  kept_bytes_ += kept.bytes;
  kept_.push_front(std::move(kept));
  // The newest stays whatever its size: its replicas are on their way.
  while (kept_bytes_ > limits_.kept_bytes && kept_.size() > 1) {
    kept_bytes_ -= kept_.back().bytes;
    kept_.pop_back();
  }
}

void LayoutIntake::SenderFailed(ArrivingMap::iterator arriving, const absl::Status& why) {
  const PeerId sender = arriving->second.sender;
  std::erase_if(arriving->second.waiters, [&](const Waiter& waiter) {
    if (waiter.peer != sender) return false;
    sinks_.refused(sender, {waiter.call.session, Named(waiter.call, why)});
    return true;
  });
  AskNext(arriving);
}

void LayoutIntake::AskNext(ArrivingMap::iterator arriving) {
  if (arriving->second.waiters.empty()) {
    arriving_.erase(arriving);
    return;
  }
  arriving->second.data = std::string();
  arriving->second.sender = arriving->second.waiters.front().peer;
  sinks_.want(arriving->second.sender, arriving->first);
}

void LayoutIntake::Drop(const std::function<bool(const Waiter&)>& gone) {
  for (auto it = arriving_.begin(); it != arriving_.end();) {
    const auto arriving = it++;
    std::deque<Waiter>& waiters = arriving->second.waiters;
    if (std::erase_if(waiters, gone) == 0 || arriving->second.checking) continue;
    const bool sends = std::any_of(waiters.begin(), waiters.end(), [&](const Waiter& waiter) {
      return waiter.peer == arriving->second.sender;
    });
    if (!sends) AskNext(arriving);
  }
}

void LayoutIntake::Forget(PeerId peer, const SessionId& session) {
  const MutexLock lock(mu_);
  Drop([&](const Waiter& waiter) { return waiter.peer == peer && waiter.call.session == session; });
}

void LayoutIntake::Forget(PeerId peer) {
  const MutexLock lock(mu_);
  Drop([&](const Waiter& waiter) { return waiter.peer == peer; });
}

}  // namespace wb
