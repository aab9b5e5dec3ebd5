#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"

#include "proto/convert.h"
#include "proto/door/names.h"
#include "proto/door/reasons.h"
#include "proto/door/registration_door.h"
#include "proto/door/tensor_table.h"
#include "proto/json_strict.h"

namespace wb {
namespace {

// Reads a file's text once. Every worker goes the way that its layout would go on the wire.
class LayoutFileDoor {
 public:
  std::variant<LoadedJob, Refusals> Load(std::string_view json) {
    if (!Parse(json)) return std::move(reasons_).Take();
    CheckJobName(file_.job(), reasons_);
    const TensorTable table(file_.tensors(), file_.aliases(), reasons_);
    if (!CheckWorkers(table)) return std::move(reasons_).Take();
    std::variant<Job, Refusals> job = MakeJob(registrations_);
    if (const auto* refusals = std::get_if<Refusals>(&job)) {
      for (const Refusal& refusal : *refusals) {
        reasons_.Add(refusal.kind, {refusal.tensor, refusal.worker}, refusal.text);
      }
    }
    if (!reasons_.empty()) return std::move(reasons_).Take();
    return InOrder(std::get<Job>(std::move(job)));
  }

 private:
  bool Parse(std::string_view json) {
    CheckStrictJson(json, v1::LayoutFile::descriptor(), reasons_);
    if (!reasons_.empty()) return false;
    google::protobuf::util::JsonParseOptions options;
    options.ignore_unknown_fields = false;
    const auto status =
        google::protobuf::util::JsonStringToMessage({json.data(), json.size()}, &file_, options);
    if (status.ok()) return true;
    const std::string text = status.message().ToString();
    reasons_.Add("json", {}, absl::StrCat("layout file: ", text));
    return false;
  }

  // False when not every worker has a name: then nothing can be said about their groups.
  bool CheckWorkers(const TensorTable& table) {
    const auto workers = static_cast<std::size_t>(file_.workers_size());
    if (workers > kMaxWorkers) {
      reasons_.Add("limit", {},
                   absl::StrCat("job has ", workers, " workers, want at most ", kMaxWorkers));
      return false;
    }
    bool identified = true;
    registrations_.reserve(workers);
    for (std::size_t i = 0; i < workers; ++i) {
      CheckedWorker checked = CheckWorker(file_.workers(static_cast<int>(i)),
                                          absl::StrCat("workers[", i, "]"), table, reasons_);
      identified = identified && checked.identified;
      checked.registration.job = file_.job();
      registrations_.push_back(std::move(checked.registration));
    }
    return identified;
  }

  // Workers in the order of the job's layouts.
  LoadedJob InOrder(Job job) {
    std::vector<std::size_t> order(registrations_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return registrations_[a].layout.name < registrations_[b].layout.name;
    });
    LoadedJob loaded;
    loaded.job = std::move(job);
    for (const std::size_t worker : order) {
      loaded.registrations.push_back(std::move(registrations_[worker]));
      loaded.wire.push_back(Wire(worker));
    }
    return loaded;
  }

  // What the worker would register: itself, and of the file's tensors and aliases those it names.
  v1::Layout Wire(std::size_t worker) {
    v1::Layout wire;
    wire.set_job(file_.job());
    *wire.mutable_worker() = std::move(*file_.mutable_workers(static_cast<int>(worker)));
    for (const v1::Param& param : wire.worker().params()) {
      for (const v1::Piece& piece : param.pieces()) Declare(piece.tensor(), wire);
    }
    return wire;
  }

  void Declare(const std::string& name, v1::Layout& wire) const {
    const auto alias = file_.aliases().find(name);
    if (alias != file_.aliases().end()) {
      (*wire.mutable_aliases())[name] = alias->second;
      Declare(alias->second, wire);
    } else if (!wire.tensors().contains(name)) {
      (*wire.mutable_tensors())[name] = file_.tensors().at(name);
    }
  }

  Reasons reasons_;
  v1::LayoutFile file_;
  std::vector<Registration> registrations_;
};

}  // namespace

std::variant<LoadedJob, Refusals> JobFromJson(std::string_view json) {
  return LayoutFileDoor().Load(json);
}

}  // namespace wb
