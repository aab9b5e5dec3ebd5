#include "tests/support/layout_gen.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>

#include "tests/support/job_builder.h"

namespace wb::test {
namespace {

// Per rank: the boxes it holds, as (lo, hi).
struct Range {
  Index lo;
  Index hi;
};
using Cut = std::vector<std::vector<Range>>;

bool OneIn(std::mt19937_64& rng, int n) {
  return Draw(rng, 1, n) == 1;
}

// `parts` + 1 ascending positions from 0 to `extent`; equal neighbours are an empty part.
std::vector<std::int64_t> Boundaries(std::mt19937_64& rng, std::int64_t extent, int parts) {
  std::vector<std::int64_t> at{0};
  const bool even = OneIn(rng, 2);
  for (int i = 1; i < parts; ++i) {
    at.push_back(even ? extent * i / parts : Draw(rng, 0, extent));
  }
  at.push_back(extent);
  std::sort(at.begin(), at.end());
  return at;
}

Range Narrow(Range range, std::size_t dim, std::int64_t lo, std::int64_t hi) {
  range.lo[dim] = lo;
  range.hi[dim] = hi;
  return range;
}

Cut CutOneDim(std::mt19937_64& rng, const Range& whole, int ranks) {
  const auto dim =
      static_cast<std::size_t>(Draw(rng, 0, static_cast<std::int64_t>(whole.lo.size()) - 1));
  // Fewer parts than ranks: ranks r with the same r * parts / ranks are replicas.
  const int parts = static_cast<int>(Draw(rng, 1, ranks));
  const std::vector<std::int64_t> at = Boundaries(rng, whole.hi[dim], parts);
  Cut cut(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    const auto part = static_cast<std::size_t>(r * parts / ranks);
    cut[static_cast<std::size_t>(r)].push_back(Narrow(whole, dim, at[part], at[part + 1]));
  }
  return cut;
}

// Blocks of dimension 0, dealt out round: rank r holds blocks r, r + ranks, ...
Cut CutInterleaved(std::mt19937_64& rng, const Range& whole, int ranks) {
  const int blocks = ranks * static_cast<int>(Draw(rng, 1, 3));
  const std::vector<std::int64_t> at = Boundaries(rng, whole.hi[0], blocks);
  Cut cut(static_cast<std::size_t>(ranks));
  for (int b = 0; b < blocks; ++b) {
    const auto block = static_cast<std::size_t>(b);
    cut[static_cast<std::size_t>(b % ranks)].push_back(Narrow(whole, 0, at[block], at[block + 1]));
  }
  return cut;
}

Cut CutGrid(std::mt19937_64& rng, const Range& whole, int ranks) {
  const int rows = static_cast<int>(Draw(rng, 1, ranks));
  const int columns = std::max(1, ranks / rows);
  const std::vector<std::int64_t> row_at = Boundaries(rng, whole.hi[0], rows);
  const std::vector<std::int64_t> column_at = Boundaries(rng, whole.hi[1], columns);
  Cut cut(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {  // ranks beyond the grid start again: replicas
    const int cell = r % (rows * columns);
    const auto row = static_cast<std::size_t>(cell / columns);
    const auto column = static_cast<std::size_t>(cell % columns);
    const Range of_row = Narrow(whole, 0, row_at[row], row_at[row + 1]);
    cut[static_cast<std::size_t>(r)].push_back(
        Narrow(of_row, 1, column_at[column], column_at[column + 1]));
  }
  return cut;
}

// Every element is in some rank's boxes. Boxes of two ranks are equal or disjoint.
Cut RandomCut(std::mt19937_64& rng, const Index& shape, int ranks) {
  const Range whole{Index(shape.size(), 0), shape};
  switch (Draw(rng, 0, 5)) {
    case 0: {  // one owner, as with pipeline or expert parallelism
      Cut cut(static_cast<std::size_t>(ranks));
      cut[static_cast<std::size_t>(Draw(rng, 0, ranks - 1))].push_back(whole);
      return cut;
    }
    case 1:
      return Cut(static_cast<std::size_t>(ranks), {whole});
    case 2:
      return CutInterleaved(rng, whole, ranks);
    case 3:
      if (shape.size() > 1) return CutGrid(rng, whole, ranks);
      return CutOneDim(rng, whole, ranks);
    default:
      return CutOneDim(rng, whole, ranks);
  }
}

// Widens boxes of dimension 0 so that they overlap.
void Widen(std::mt19937_64& rng, const Index& shape, Cut& cut) {
  for (std::vector<Range>& ranges : cut) {
    for (Range& range : ranges) {
      if (range.lo[0] >= range.hi[0]) continue;
      range.lo[0] = std::max<std::int64_t>(0, range.lo[0] - Draw(rng, 0, 2));
      range.hi[0] = std::min(shape[0], range.hi[0] + Draw(rng, 0, 2));
    }
  }
}

// Lays out one worker's boxes: params of their own or in one flat buffer, in random orientation.
class ParamMaker {
 public:
  ParamMaker(std::mt19937_64& rng, JobBuilder& builder) : rng_(rng), builder_(builder) {}

  void Add(const std::string& tensor, const Range& range, std::int64_t element_bytes) {
    ParamSpec param;
    param.name = tensor + "#" + std::to_string(count_++);
    const std::size_t ndim = range.lo.size();
    // Extra leading dimensions: a slot of a stack.
    const auto stacked = static_cast<std::size_t>(OneIn(rng_, 4) ? Draw(rng_, 1, 2) : 0);
    Index axes(ndim);
    std::iota(axes.begin(), axes.end(), static_cast<std::int64_t>(stacked));
    if (OneIn(rng_, 3)) std::shuffle(axes.begin(), axes.end(), rng_);
    Index at(ndim + stacked, 0);
    param.shape.assign(ndim + stacked, 1);
    for (std::size_t d = 0; d < ndim; ++d) {
      param.shape[static_cast<std::size_t>(axes[d])] = range.hi[d] - range.lo[d];
    }
    Pad(param, at);
    if (OneIn(rng_, 4)) Stretch(param);
    if (OneIn(rng_, 2)) PutInFlatBuffer(param, element_bytes);
    param.pieces.push_back({tensor, range.lo, range.hi, at, axes});
    builder_.AddParam(std::move(param));
  }

 private:
  // An empty shard stays empty: a rollout worker with padding alone would be refused.
  void Pad(ParamSpec& param, Index& at) {
    const bool empty = std::find(param.shape.begin(), param.shape.end(), 0) != param.shape.end();
    if (empty || !OneIn(rng_, 3)) return;
    for (std::size_t d = 0; d < at.size(); ++d) {
      at[d] = Draw(rng_, 0, 2);
      param.shape[d] += at[d] + Draw(rng_, 0, 2);
    }
  }

  void Stretch(ParamSpec& param) {
    param.strides = RowMajor(param.shape);
    std::int64_t step = 1;
    for (std::size_t d = param.shape.size(); d-- > 0;) {
      param.strides[d] = step + Draw(rng_, 0, 2);
      step = param.strides[d] * std::max<std::int64_t>(1, param.shape[d]);
    }
  }

  // Views of one buffer, side by side or with a gap, as Megatron's flat param buffer.
  void PutInFlatBuffer(ParamSpec& param, std::int64_t element_bytes) {
    const Index strides = param.strides.empty() ? RowMajor(param.shape) : param.strides;
    std::int64_t elements = 1;
    for (std::size_t d = 0; d < strides.size(); ++d) {
      elements += (std::max<std::int64_t>(1, param.shape[d]) - 1) * strides[d];
    }
    if (OneIn(rng_, 3)) flat_bytes_ += static_cast<std::uint64_t>(Draw(rng_, 1, 9));
    param.buffer = "flat";
    param.offset_bytes = flat_bytes_;
    flat_bytes_ += static_cast<std::uint64_t>(elements * element_bytes);
  }

  std::mt19937_64& rng_;
  JobBuilder& builder_;
  int count_ = 0;
  std::uint64_t flat_bytes_ = 0;
};

Dtype RandomDtype(std::mt19937_64& rng) {
  return static_cast<Dtype>(Draw(rng, 0, static_cast<std::int64_t>(Dtype::kBool)));
}

std::vector<Tensor> RandomTensors(std::mt19937_64& rng, const JobLimits& limits) {
  std::vector<Tensor> tensors;
  const std::int64_t count = Draw(rng, 1, limits.tensors);
  for (std::int64_t t = 0; t < count; ++t) {
    Index shape;
    const std::int64_t ndim = Draw(rng, 1, 3);
    for (std::int64_t d = 0; d < ndim; ++d) shape.push_back(Draw(rng, 1, limits.extent));
    const bool identical = limits.overlap_identical && OneIn(rng, 6);
    tensors.push_back({"t" + std::to_string(t), RandomDtype(rng), std::move(shape), identical});
  }
  return tensors;
}

// A tensor's box once more in a param of its own, whole or in part: tied.
void MaybeTie(std::mt19937_64& rng, const Range& range, std::vector<Range>& held) {
  if (!OneIn(rng, 8)) return;
  Range again = range;
  if (OneIn(rng, 2)) {
    const auto dim =
        static_cast<std::size_t>(Draw(rng, 0, static_cast<std::int64_t>(range.lo.size()) - 1));
    again.lo[dim] = Draw(rng, range.lo[dim], range.hi[dim] - 1);
  }
  held.push_back(std::move(again));
}

}  // namespace

std::int64_t Draw(std::mt19937_64& rng, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(rng);
}

Job RandomJob(std::mt19937_64& rng, const JobLimits& limits) {
  const std::vector<Tensor> tensors = RandomTensors(rng, limits);
  JobBuilder builder("random");
  for (const Tensor& t : tensors) {
    builder.AddTensor(t.name, t.dtype, t.shape, t.overlap_identical);
  }
  const bool shared_nodes = OneIn(rng, 3);
  const auto node = [&](const std::string& kind) {
    return (shared_nodes ? "n" : kind) + std::to_string(Draw(rng, 0, 2));
  };
  const auto add_worker = [&](const std::vector<Cut>& cuts, std::size_t rank, bool may_tie) {
    ParamMaker maker(rng, builder);
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      std::vector<Range> held;
      for (const Range& range : cuts[t][rank]) {
        const bool empty = !std::equal(range.lo.begin(), range.lo.end(), range.hi.begin(),
                                       [](std::int64_t lo, std::int64_t hi) { return lo < hi; });
        held.push_back(range);
        if (!empty && may_tie) MaybeTie(rng, range, held);
      }
      for (const Range& range : held) {
        maker.Add(tensors[t].name, range, DtypeBytes(tensors[t].dtype));
      }
    }
  };
  const auto trainers = static_cast<int>(Draw(rng, 1, limits.trainers));
  std::vector<Cut> cuts;
  for (const Tensor& t : tensors) {
    cuts.push_back(RandomCut(rng, t.shape, trainers));
    if (t.overlap_identical) Widen(rng, t.shape, cuts.back());
  }
  for (int r = 0; r < trainers; ++r) {
    builder.Trainer(r, node("trainer"));
    add_worker(cuts, static_cast<std::size_t>(r), false);
  }
  const std::int64_t engines = Draw(rng, 1, limits.engines);
  for (std::int64_t e = 0; e < engines; ++e) {
    const auto ranks = static_cast<int>(Draw(rng, 1, limits.ranks));
    cuts.clear();
    for (const Tensor& t : tensors) cuts.push_back(RandomCut(rng, t.shape, ranks));
    for (int r = 0; r < ranks; ++r) {
      builder.Rollout("engine" + std::to_string(e), r, node("rollout"));
      add_worker(cuts, static_cast<std::size_t>(r), limits.tied);
    }
  }
  return builder.Build();
}

Job ShuffleTables(const Job& job, std::mt19937_64& rng) {
  Job shuffled = job;
  std::vector<std::uint32_t> order(job.tensors.size());
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), rng);
  for (std::uint32_t t = 0; t < order.size(); ++t) shuffled.tensors[order[t]] = job.tensors[t];
  for (Layout& layout : shuffled.layouts) {
    for (Piece& piece : layout.pieces.Edit()) piece.tensor = TensorId(order[piece.tensor.value()]);
  }
  std::shuffle(shuffled.layouts.begin(), shuffled.layouts.end(), rng);
  return shuffled;
}

Job ExchangeRanks(const Job& job, std::mt19937_64& rng) {
  Job exchanged = job;
  for (std::size_t begin = 0; begin < job.layouts.size();) {
    std::size_t end = begin;
    while (end < job.layouts.size() &&
           job.layouts[end].name.group == job.layouts[begin].name.group) {
      ++end;
    }
    const auto first = exchanged.layouts.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = exchanged.layouts.begin() + static_cast<std::ptrdiff_t>(end);
    std::shuffle(first, last, rng);
    for (std::size_t i = begin; i < end; ++i) exchanged.layouts[i].name = job.layouts[i].name;
    begin = end;
  }
  return exchanged;
}

}  // namespace wb::test
