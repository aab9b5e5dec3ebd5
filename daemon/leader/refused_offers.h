#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "daemon/leader/leader.h"
#include "daemon/leader/plans.h"
#include "planner/model/refusal.h"

namespace wb {

/// Every reason why the newest offer of each job has no plan, or none for some groups; an error
/// tells the first ones only. Kept until the job's next offer, also when all its workers have gone.
///
/// Invariant: of all jobs together kMaxRefusals reasons at most, and kMostBytes of them, are kept:
/// the first ones of an offer, and the jobs offered longest ago are the first to be forgotten.
/// Loop-confined.
class RefusedOffers {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{2}
                                            << 20;  // an answer of gRPC's holds twice

  void Note(const std::string& job, const Offering& offering);
  /// Of one job, or with "" of all, the newest offer first; the first `limit`, or with 0 all.
  RefusalsSnapshot List(const std::string& job, std::uint32_t limit) const;

 private:
  struct Offer {
    std::string job;
    std::vector<OfferRefusal> kept;
    std::size_t bytes = 0;    // of `kept`
    std::uint64_t total = 0;  // with those that are not kept
  };

  static void Append(Offer& offer, const std::string& group, const Refusals& refusals);

  std::vector<Offer> offers_;  // newest first
};

}  // namespace wb
