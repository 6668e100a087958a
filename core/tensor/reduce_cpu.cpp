// Defines the reduce loop on the CPU: how a tensor is cut into matrices for the kernels of
// reduce_isa.cpp.
//
// Note [Pairwise sums]
// ~~~~~~~~~~~~~~~~~~~~
// A kernel adds at most a few dozen numbers in one chain (it has many chains side by side). What
// the kernels return for consecutive blocks is merged like the carries of a binary counter, so any
// element takes part in about chain + log2(blocks) additions (Higham, "Accuracy and Stability of
// Numerical Algorithms", section 4.2). A large reduction to few results is first cut into pieces,
// whose number depends on the sizes only; threads share out the pieces.
#include <algorithm>
#include <bit>

#include "core/base/ceil_div.h"
#include "core/device/allocator.h"
#include "core/device/threads.h"
#include "core/tensor/dims.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/prefetch.h"
#include "core/tensor/reduce_split.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

ISA_TABLES(ReduceLoops, reduce_loops)

namespace {

constexpr int64_t kTile = 4096;      // elements that are converted or gathered at once
constexpr int64_t kBlock = 8192;     // elements of a row that are reduced at once
constexpr int64_t kTask = 32768;     // elements that are worth a thread
constexpr int64_t kPieces = 64;      // enough for the cores of a large machine
constexpr int64_t kColumns = 1024;   // results that are accumulated side by side
constexpr int64_t kRows = 64;        // elements that a column adds in one chain,
constexpr int64_t kMaxRows = 256;    // or, where there are few columns to share a call, at most
constexpr int64_t kMaxGroup = 1024;  // results that one task makes
constexpr int64_t kShortRow = 8;     // rows below this do not fill a vector
constexpr int64_t kShortRun = 16;    // runs below this are gathered several at a time
constexpr int64_t kSourceRun = 256;  // runs below this are not worth a call of a source
constexpr int64_t kRowsAhead = 4;    // that are asked for before they are gathered
constexpr int64_t kMaxItem = sizeof(std::complex<double>);
constexpr int64_t kMaxAccumulator = 16;  // bytes
constexpr int64_t kVector = 64;          // bytes of the results along a dim, or of what is
constexpr int64_t kFewBytes = 512;       // reduced to them, below which these are no task
constexpr int64_t kWord = 8;             // bytes of the widest number in an accumulator

struct Target {
  char* data = nullptr;  // null: nobody wants it
  int64_t item = 0;
  CastLoop cast = nullptr;
};

struct Plan : ReduceSplit {
  const Reducer* reducer;
  double parameter;
  char* data;  // only a name for the first element, unless it is in memory
  bool in_memory;
  const RangedLoop* source;  // null: the elements are there already
  int64_t item;              // bytes of an element in memory
  int64_t kernel_item;
  CastLoop cast = nullptr;  // null: the kernel reads the memory's own dtype
  bool by_rows;             // the rows of the matrices run along reduced dims
  bool unit_stride;         // their elements are neighbors
  Target targets[2];

  // The work: group * pieces tasks. A group is some results within one run of `outputs`.
  int64_t group;
  int64_t groups_per_run;
  int64_t block;  // elements (by_rows) or rows that a kernel reduces at once
  int64_t piece;  // reduced elements of a task
  int64_t pieces;

  bool is_direct() const { return unit_stride && !cast; }
  int64_t groups() const { return outputs.numel / outputs.run() * groups_per_run; }
  // Of n results: whole words, so that what follows is aligned.
  int64_t accumulator_bytes(int64_t n) const {
    return round_up(n * reducer->accumulator_bytes, kWord);
  }
};

// ---- making the plan ----------------------------------------------------------------------------

void choose_rows(Plan& plan) {
  // Rows too short for the vectors are gathered so that the vectors run across results.
  bool short_rows = plan.reduced.numel < kShortRow && plan.outputs.numel > 1;
  plan.by_rows = !short_rows && plan.reduced_is_nearest;
  // Results share a task with those along one dim: the longest, where they are few along the last.
  const int64_t run = plan.outputs.run() * plan.item;
  if (run < kVector && run * plan.reduced.numel < kFewBytes && plan.outputs.sizes.size() > 1) {
    const Shape& sizes = plan.outputs.sizes;
    const size_t longest = size_t(std::ranges::max_element(sizes) - sizes.begin());
    for (Shape* list : {&plan.outputs.sizes, &plan.outputs.strides, &plan.output_strides})
      std::swap((*list)[longest], list->back());
  }
  const ReduceSpace& inner = plan.by_rows ? plan.reduced : plan.outputs;
  bool one_element = plan.reduced.sizes.empty() && plan.outputs.sizes.empty();
  plan.unit_stride = one_element || inner.run_stride() == plan.item;
}

// How the elements of the input are read, by a kernel that takes `read`.
Plan plan_reading(const Tensor& input, DimSet dims, DType read) {
  Plan plan;
  static_cast<ReduceSplit&>(plan) = split_dims(input, dims);
  plan.item = int64_t(input.itemsize());
  plan.kernel_item = int64_t(dtype_size(read));
  if (input.dtype() != read) plan.cast = cast_loop(input.dtype(), read);
  choose_rows(plan);
  return plan;
}

void divide_work(Plan& plan) {
  int64_t run = plan.outputs.run(), reduced = plan.reduced.numel;
  if (plan.by_rows) {
    plan.block = plan.is_direct() ? kBlock : kTile;
    bool whole_rows =
        reduced <= plan.block && (!plan.is_direct() || plan.reduced.sizes.size() <= 1);
    int64_t most = plan.is_direct() ? kTask : kTile;
    plan.group = whole_rows ? std::clamp<int64_t>(most / reduced, 1, kMaxGroup) : 1;
    // Where the elements of a result lie in several runs, neighboring results share a call.
    if (!whole_rows && plan.is_direct())
      plan.group = std::clamp<int64_t>(kBlock / plan.reduced.run(), 1, kMaxGroup);
  } else {
    plan.group = plan.is_direct() ? kColumns : kColumns / 4;
  }
  plan.group = std::min(plan.group, run);
  if (!plan.by_rows) {
    plan.block = std::min(kTile / plan.group, kMaxRows);
    if (plan.is_direct()) plan.block = std::max(plan.block, kRows);
  }
  plan.groups_per_run = ceil_div(run, plan.group);
  plan.pieces = 1;
  plan.piece = reduced;
  int64_t work = plan.group * reduced;
  if (plan.groups() < kPieces && work > kTask && reduced > plan.block) {
    int64_t wanted = std::min(kPieces / plan.groups(), ceil_div(work, kTask));
    plan.piece = round_up(ceil_div(reduced, wanted), plan.block);
    plan.pieces = ceil_div(reduced, plan.piece);
  }
}

// ---- running it ---------------------------------------------------------------------------------

// Where the kernel finds a matrix whose rows are `stride` elements apart.
struct Matrix {
  char* data;
  int64_t stride;
};

// The buffers of one thread, for what is not in memory or does not lie right there.
class Tiles {
 public:
  explicit Tiles(const Plan& plan)
      : plan_(plan),
        computed_(plan.source
                      ? size_t(plan.group * std::min(plan.block, plan.reduced.numel) * plan.item)
                      : 0) {}

  // Has the source compute a matrix, and says where it is.
  Matrix compute(char* from, int64_t stride, int64_t rows, int64_t columns) {
    Matrix matrix{from, stride};
    bool one_run = stride == columns;
    if (!plan_.in_memory)
      matrix = {static_cast<char*>(computed_.data()), one_run ? columns : width(columns)};
    int64_t runs = one_run ? 1 : rows, n = one_run ? rows * columns : columns;
    int64_t begin = (from - plan_.data) / plan_.item;
    for (int64_t r = 0; r < runs; ++r, begin += stride)
      plan_.source->run(begin, begin + n, matrix.data + r * matrix.stride * plan_.item);
    return matrix;
  }

  // Brings reduced elements [begin, begin + n) of `results` results, at most kTile in all.
  Matrix load(char* from, int64_t results, int64_t begin, int64_t n) {
    const int64_t result_stride = plan_.outputs.run_stride();
    const int64_t rows = plan_.by_rows ? results : n, row = plan_.by_rows ? n : width(results);
    const bool gathers =
        !plan_.source && (plan_.by_rows ? plan_.reduced.run() : results) < kShortRun;
    char* to = gathers && plan_.cast ? gathered_ : converted_;
    auto bring = [&](char* p, int64_t stride, int64_t run, int64_t done) {
      if (gathers) {
        // Copies of short rows, or parts of rows, by one call for all of them.
        const int64_t item = plan_.item, apart = row * item;
        if (plan_.by_rows)
          copy_rows(to + done * item, {apart, item}, p, {result_stride, stride}, item, rows, run);
        else
          copy_rows(to + done * apart, {apart, item}, p, {stride, result_stride}, item, run,
                    results);
      } else if (plan_.by_rows) {
        for (int64_t r = 0; r < results; ++r)
          fetch(p + r * result_stride, stride, run, r * n + done);
      } else {
        for (int64_t k = 0; k < run; ++k) {
          prefetch(p + (k + kRowsAhead) * stride, results * plan_.item);
          fetch(p + k * stride, result_stride, results, (done + k) * row);
        }
      }
    };
    for_each_run(from, plan_.reduced.sizes, plan_.reduced.strides, begin, n, bring);
    if (to == gathered_) plan_.cast(gathered_, converted_, rows * row);
    return {converted_, row};
  }

  // Brings `n` elements that lie side by side.
  char* convert(const char* from, int64_t n) {
    plan_.cast(from, converted_, n);
    return converted_;
  }

 private:
  // How far apart rows are to lie. Those of the last group may be shorter, but lie as the others
  // do: a kernel treats rows without gaps in another way.
  int64_t width(int64_t columns) const { return plan_.by_rows ? columns : plan_.group; }
  void fetch(char* from, int64_t stride, int64_t n, int64_t at) {
    if (plan_.source) from = compute(from, n, 1, n).data;
    char* to = converted_ + at * plan_.kernel_item;
    if (!plan_.cast) {
      copy_run(to, plan_.item, from, stride, plan_.item, n);
    } else if (stride == plan_.item) {
      plan_.cast(from, to, n);
    } else {
      copy_run(gathered_, plan_.item, from, stride, plan_.item, n);
      plan_.cast(gathered_, to, n);
    }
  }

  const Plan& plan_;
  CpuBuffer computed_;
  alignas(64) char gathered_[kTile * kMaxItem];
  alignas(64) char converted_[kTile * kMaxItem];
};

// Accumulators of consecutive blocks, merged when two cover the same number of blocks.
class Cascade {
 public:
  // The total will stand in `total`; `most` blocks of n results at most will come.
  Cascade(const Plan& plan, int64_t n, int64_t most, char* total)
      : plan_(plan),
        n_(n),
        item_(plan.accumulator_bytes(n)),
        total_(total),
        bytes_(size_t(item_) * size_t(std::bit_width(uint64_t(most)))) {
    scratch_ = static_cast<char*>(cpu_allocate(bytes_));
  }
  ~Cascade() { cpu_free(scratch_, bytes_); }
  Cascade(const Cascade&) = delete;
  Cascade& operator=(const Cascade&) = delete;

  // Where the accumulators of the next block are to be written.
  char* next() { return level(depth_); }
  void push(int64_t count) {
    counts_[depth_++] = count;
    int64_t blocks = ++blocks_;
    for (; depth_ > 1 && blocks % 2 == 0; blocks /= 2) merge_top();
  }
  void finish() {
    while (depth_ > 1) merge_top();
  }

 private:
  char* level(int64_t i) { return i == 0 ? total_ : scratch_ + (i - 1) * item_; }
  void merge_top() {
    --depth_;
    plan_.reducer->merge(level(depth_ - 1), counts_[depth_ - 1], level(depth_), counts_[depth_],
                         n_);
    counts_[depth_ - 1] += counts_[depth_];
  }

  const Plan& plan_;
  int64_t n_, item_;
  char* total_;
  size_t bytes_;
  char* scratch_;
  int64_t counts_[64];
  int64_t depth_ = 0, blocks_ = 0;
};

// Some results, side by side within a run of `outputs`.
struct Group {
  char* from;      // the first element of the first result
  int64_t output;  // where the first result goes, in elements
  int64_t results;

  Group(const Plan& plan, int64_t index) {
    int64_t run = plan.outputs.run();
    int64_t within = index % plan.groups_per_run * plan.group, row = index / plan.groups_per_run;
    auto at = [&](const Shape& strides) {
      if (strides.empty()) return int64_t(0);
      size_t outer = strides.size() - 1;
      return offset_of(ShapeRef(plan.outputs.sizes).first(outer), ShapeRef(strides).first(outer),
                       row) +
             within * strides[outer];
    };
    from = plan.data + at(plan.outputs.strides);
    output = at(plan.output_strides);
    results = std::min(plan.group, run - within);
  }
};

// How many of the reduced elements [begin, end) the next kernel call takes. Whole runs are left
// in place; short ones are gathered. The last group of a run may have fewer results, and is cut as
// the others are: what is added first must not depend on where a result lies.
int64_t next_block(const Plan& plan, int64_t begin, int64_t end) {
  int64_t n = std::min(plan.block, end - begin);
  int64_t width = plan.by_rows ? 1 : plan.group;
  if (plan.is_direct()) {
    int64_t rest = plan.reduced.rest_of_run(begin);
    if (n <= rest) return n;
    if (rest * width >= kShortRun) return rest;
  }
  return std::min(n, std::max<int64_t>(kTile / plan.group, 1));
}

void run_block(const Plan& plan, Tiles* tiles, const Group& group, int64_t begin, int64_t n,
               char* accumulators) {
  const ReduceSpace& outer = plan.by_rows ? plan.outputs : plan.reduced;
  int64_t rows = plan.by_rows ? group.results : n, columns = plan.by_rows ? n : group.results;
  bool one_run = n <= plan.reduced.rest_of_run(begin);
  Matrix matrix;
  if (plan.unit_stride && one_run &&
      (!plan.cast || rows == 1 || outer.run_stride() == columns * plan.item)) {
    char* from = group.from + offset_of(plan.reduced.sizes, plan.reduced.strides, begin);
    matrix = {from, outer.run_stride() / plan.item};
    if (plan.source) matrix = tiles->compute(from, matrix.stride, rows, columns);
    if (plan.cast) matrix = {tiles->convert(matrix.data, rows * columns), columns};
  } else {
    matrix = tiles->load(group.from, group.results, begin, n);
  }
  auto kernel =
      plan.by_rows ? plan.reducer->columns_of_each_row : plan.reducer->rows_of_each_column;
  kernel(matrix.data, matrix.stride, rows, columns, plan.parameter, accumulators);
}

// Reduces elements [begin, end) of every result of the group.
void accumulate(const Plan& plan, Tiles* tiles, const Group& group, int64_t begin, int64_t end,
                char* accumulators) {
  int64_t n = next_block(plan, begin, end);
  if (begin + n == end) return run_block(plan, tiles, group, begin, n, accumulators);
  Cascade cascade(plan, group.results, end - begin, accumulators);
  for (; begin < end; begin += n) {
    n = next_block(plan, begin, end);
    run_block(plan, tiles, group, begin, n, cascade.next());
    cascade.push(n);
  }
  cascade.finish();
}

void finish(const Plan& plan, const Group& group, const char* accumulators) {
  alignas(64) char written[2][kMaxGroup * kMaxItem];
  alignas(64) char converted[kMaxGroup * kMaxItem];
  int64_t stride = plan.output_strides.empty() ? 1 : plan.output_strides.back();
  bool in_place[2];
  char* kernel_targets[2];
  for (int k = 0; k < 2; ++k) {
    const Target& target = plan.targets[k];
    in_place[k] = target.data && !target.cast && (stride == 1 || group.results == 1);
    kernel_targets[k] = in_place[k] ? target.data + group.output * target.item : written[k];
  }
  plan.reducer->finish(accumulators, plan.reduced.numel, group.results, plan.parameter,
                       kernel_targets[0], kernel_targets[1]);
  for (int k = 0; k < 2; ++k) {
    const Target& target = plan.targets[k];
    if (!target.data || in_place[k]) continue;
    const char* from = written[k];
    if (target.cast) {
      target.cast(from, converted, group.results);
      from = converted;
    }
    copy_run(target.data + group.output * target.item, stride * target.item, from, target.item,
             target.item, group.results);
  }
}

// The accumulators of the pieces of all groups, when there are several.
class Pieces {
 public:
  explicit Pieces(const Plan& plan)
      : plan_(plan),
        bytes_(size_t(plan.accumulator_bytes(plan.group) * plan.pieces * plan.groups())),
        data_(static_cast<char*>(cpu_allocate(bytes_))) {}
  ~Pieces() { cpu_free(data_, bytes_); }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;

  char* at(int64_t group, int64_t piece) {
    return data_ + (group * plan_.pieces + piece) * plan_.accumulator_bytes(plan_.group);
  }
  int64_t count(int64_t piece, int64_t pieces) const {
    return std::min((piece + pieces) * plan_.piece, plan_.reduced.numel) - piece * plan_.piece;
  }
  // Merges neighbors until the first holds all.
  void merge(const Group& group, int64_t index) {
    for (int64_t step = 1; step < plan_.pieces; step *= 2)
      for (int64_t p = 0; p + step < plan_.pieces; p += 2 * step)
        plan_.reducer->merge(at(index, p), count(p, step), at(index, p + step),
                             count(p + step, step), group.results);
  }

 private:
  const Plan& plan_;
  size_t bytes_;
  char* data_;
};

void run_groups(const Plan& plan, Tiles* tiles, int64_t begin, int64_t end) {
  alignas(64) char accumulators[kMaxGroup * kMaxAccumulator];
  for (int64_t i = begin; i < end; ++i) {
    Group group(plan, i);
    accumulate(plan, tiles, group, 0, plan.reduced.numel, accumulators);
    finish(plan, group, accumulators);
  }
}

void run_pieces(const Plan& plan, Pieces& pieces, Tiles* tiles, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    int64_t group = i / plan.pieces, piece = i % plan.pieces;
    int64_t from = piece * plan.piece;
    accumulate(plan, tiles, Group(plan, group), from,
               std::min(from + plan.piece, plan.reduced.numel), pieces.at(group, piece));
  }
}

// Calls f with buffers when the layout may need them: they are too large to set up in vain.
template <class F>
[[gnu::noinline]] void with_tiles(const Plan& plan, F&& f) {
  Tiles tiles(plan);
  f(&tiles);
}
template <class F>
void with_tiles_if_needed(const Plan& plan, F&& f) {
  if (plan.is_direct() && plan.reduced.sizes.size() <= 1 && !plan.source) f(nullptr);
  else with_tiles(plan, f);
}

void run(const Plan& plan) {
  int64_t task = plan.group * plan.piece;
  int64_t grain = std::max<int64_t>(kTask / task, 1);
  if (plan.pieces == 1) {
    parallel_for(0, plan.groups(), grain, [&](int64_t begin, int64_t end) {
      with_tiles_if_needed(plan, [&](Tiles* tiles) { run_groups(plan, tiles, begin, end); });
    });
    return;
  }
  Pieces pieces(plan);
  parallel_for(0, plan.groups() * plan.pieces, grain, [&](int64_t begin, int64_t end) {
    with_tiles_if_needed(plan, [&](Tiles* tiles) { run_pieces(plan, pieces, tiles, begin, end); });
  });
  int64_t merged = plan.group * plan.pieces;
  parallel_for(0, plan.groups(), std::max<int64_t>(kTask / merged, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   Group group(plan, i);
                   pieces.merge(group, i);
                   finish(plan, group, pieces.at(i, 0));
                 }
               });
}

// Kernels write the compute type, but positions as they are.
Target target_of(const Tensor& result, DType compute) {
  if (!result.defined()) return {};
  bool converts = result.dtype() != compute && result.dtype() != DType::int64;
  return {static_cast<char*>(result.data()), int64_t(result.itemsize()),
          converts ? cast_loop(compute, result.dtype()) : nullptr};
}

// The reducer that takes and gives a narrow dtype as it is, where there is one.
const Reducer* narrow_reducer(Reduction reduction, DType dtype) {
  int index = narrow_index(dtype);
  const ReduceLoops& loops = active(reduce_loops_sets);
  if (index >= 0 && reduction == Reduction::maximum) return &loops.narrow_maximum[index];
  if (index >= 0 && reduction == Reduction::minimum) return &loops.narrow_minimum[index];
  return nullptr;
}

// The reducer that takes bfloat16 as it is, and gives floats, where there is one.
const Reducer* bfloat16_reducer(Reduction reduction) {
  const Reducer& reducer = active(reduce_loops_sets).of_bfloat16[int(reduction)];
  return reducer.finish ? &reducer : nullptr;
}

}  // namespace

const Reducer& reducer_of(Reduction reduction, DType dtype) {
  int kernel = int(reduction), compute = int(compute_of(dtype));
  const Reducer* reducer = &active(reduce_loops_sets).of[kernel][compute];
  // Those of uint64 are in the baseline only.
  if (!reducer->finish) reducer = &reduce_loops_sets[0]->of[kernel][compute];
  CHECK(reducer->finish, ErrorKind::kNotImplemented, "not implemented for ", dtype_name(dtype),
        ".");
  return *reducer;
}

void run_reduce_cpu(Reduction reduction, const Tensor& input, DimSet dims, DType compute,
                    double parameter, const Tensor& first, const Tensor& second,
                    const RangedLoop* source) {
  DType read = input.dtype();  // by the kernel
  const Reducer* reducer = nullptr;
  if (read == first.dtype()) reducer = narrow_reducer(reduction, read);
  if (reducer) compute = read;
  else if (read == DType::bfloat16 && compute == DType::float32)
    reducer = bfloat16_reducer(reduction);
  if (!reducer) {
    reducer = &reducer_of(reduction, compute);
    read = compute;
  }
  if (first.numel() == 1 && input.is_contiguous() && input.numel() <= kTile && !source &&
      input.dtype() == read && first.dtype() == compute) {
    // Small and in one run: no plan is needed.
    alignas(16) char accumulator[kMaxAccumulator];
    int64_t n = input.numel();
    double ignored;
    reducer->columns_of_each_row(input.data(), n, 1, n, parameter, accumulator);
    reducer->finish(accumulator, n, 1, parameter, first.data(),
                    second.defined() ? second.data() : &ignored);
    return;
  }
  Plan plan = plan_reading(input, dims, read);
  plan.reducer = reducer;
  plan.parameter = parameter;
  static char no_memory;
  plan.in_memory = input.device().is_cpu();
  plan.data = plan.in_memory ? input.data<char>() : &no_memory;
  plan.source = source;
  plan.targets[0] = target_of(first, compute);
  plan.targets[1] = target_of(second, compute);
  divide_work(plan);
  run(plan);
}

bool reads_ranges(const Tensor& input, DimSet dims, DType compute) {
  Plan plan = plan_reading(input, dims, compute);
  const ReduceSpace& inner = plan.by_rows ? plan.reduced : plan.outputs;
  const ReduceSpace& outer = plan.by_rows ? plan.outputs : plan.reduced;
  bool one_run = inner.sizes.size() <= 1 && outer.sizes.size() <= 1 &&
                 (outer.sizes.empty() || outer.run_stride() == inner.run() * plan.item);
  return plan.unit_stride && (one_run || inner.run() >= kSourceRun);
}

}  // namespace rushlight
