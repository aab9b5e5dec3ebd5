#include "daemon/leader/refused_offers.h"

#include <algorithm>
#include <utility>

namespace wb {
namespace {

constexpr std::size_t kFieldBytes = 64;  // of a reason beside its texts, here or in an answer

std::size_t BytesOf(const OfferRefusal& one) {
  const Refusal& refusal = one.refusal;
  return kFieldBytes + one.job.size() + one.group.size() + refusal.kind.size() +
         refusal.tensor.size() + refusal.worker.size() + refusal.text.size();
}

}  // namespace

void RefusedOffers::Append(Offer& offer, const std::string& group, const Refusals& refusals) {
  offer.total += refusals.size();
  for (const Refusal& refusal : refusals) {
    OfferRefusal one{offer.job, group, refusal};
    const std::size_t bytes = offer.bytes + BytesOf(one);
    if (offer.kept.size() == kMaxRefusals || bytes > kMostBytes) return;
    offer.kept.push_back(std::move(one));
    offer.bytes = bytes;
  }
}

void RefusedOffers::Note(const std::string& job, const Offering& offering) {
  std::erase_if(offers_, [&](const Offer& offer) { return offer.job == job; });
  Offer newest{job, {}, 0, 0};
  Append(newest, "", offering.refusals);
  for (const auto& [group, refusals] : offering.misfits) Append(newest, group, refusals);
  if (newest.total == 0) return;
  offers_.insert(offers_.begin(), std::move(newest));
  std::size_t reasons = 0;
  std::size_t bytes = 0;
  const auto forgotten = std::find_if(offers_.begin(), offers_.end(), [&](const Offer& offer) {
    reasons += offer.kept.size();
    bytes += offer.bytes;
    return reasons > kMaxRefusals || bytes > kMostBytes;
  });
  offers_.erase(forgotten, offers_.end());
}

RefusalsSnapshot RefusedOffers::List(const std::string& job, std::uint32_t limit) const {
  const std::size_t most = limit == 0 ? kMaxRefusals : limit;
  RefusalsSnapshot all;
  for (const Offer& offer : offers_) {
    if (!job.empty() && offer.job != job) continue;
    all.total += offer.total;
    const std::size_t more = std::min(most - all.refusals.size(), offer.kept.size());
    all.refusals.insert(all.refusals.end(), offer.kept.begin(),
                        offer.kept.begin() + static_cast<std::ptrdiff_t>(more));
  }
  return all;
}

}  // namespace wb
