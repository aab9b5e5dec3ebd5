// What happens when anything fails at any stage of an update: every victim, fault and stage, with
// real processes that are held at the stage. Prints what was seen as a table.

#include <cstdint>
#include <exception>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"

#include "client/wbctl/process/child.h"
#include "tests/support/catch.h"
#include "tests/system/failures/cell_run.h"
#include "tests/system/failures/cluster.h"
#include "tests/system/failures/failure_cells.h"

namespace wb::test {
namespace {

/// Clusters serve one cell after another as long as these are good.
class Clusters {
 public:
  Cluster& Get() {
    if (cluster_ == nullptr) {
      // A silent daemon counts as dead after a second, and who is in doubt waits two for a leader.
      // Six chunks in all, three for engine0/0.
      cluster_ = std::make_unique<Cluster>(
          Cluster::Options{.bytes = 6 << 20, .more = "timeouts: {peer: 1s, decision: 2s}\n"});
      version_ = 0;
    }
    return *cluster_;
  }
  std::uint64_t& version() { return version_; }
  void Drop() { cluster_.reset(); }

 private:
  std::unique_ptr<Cluster> cluster_;
  std::uint64_t version_ = 0;
};

std::string LastWords(Cluster& cluster) {
  std::string words;
  for (const char* node : {"lead", "n0", "n1", "n2"}) {
    absl::StrAppend(&words, node, ":\n", Tail(cluster.daemon(node).process().log(), 25, "  "));
  }
  return words;
}

void WalkTable(Victim victim) {
  static Clusters clusters;
  const std::vector<Cell> cells = CellsOf(victim);
  for (const Cell& cell : cells) {
    DYNAMIC_SECTION(NameOf(cell.fault) << " while " << NameOf(cell.stage)) {
      Cluster& cluster = clusters.Get();
      CellRun run(cluster, cell, clusters.version());
      std::string faults;
      try {
        faults = run.Run();
      } catch (const std::exception& error) {
        faults = absl::StrCat(error.what(), "\n");
      }
      std::cout << run.Row() << std::endl;
      const std::string words = faults.empty() ? "" : LastWords(cluster);
      if (!faults.empty() || &cell == &cells.back()) clusters.Drop();
      INFO(words);
      CAPTURE(faults);
      REQUIRE(faults.empty());
    }
  }
}

TEST_CASE("A trainer's failure at every stage of an update", "[system][failures]") {
  WalkTable(Victim::kTrainer);
}

TEST_CASE("A rollout's failure at every stage of an update", "[system][failures][field][case-93]") {
  WalkTable(Victim::kRollout);
}

TEST_CASE("A failure of the trainer's daemon at every stage of an update", "[system][failures]") {
  WalkTable(Victim::kTrainerDaemon);
}

TEST_CASE("A failure of a rollout's daemon at every stage of an update", "[system][failures]") {
  WalkTable(Victim::kRolloutDaemon);
}

TEST_CASE("A leader's failure at every stage of an update", "[system][failures]") {
  WalkTable(Victim::kLeader);
}

}  // namespace
}  // namespace wb::test
