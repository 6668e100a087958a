// Defines the loop driver. What lies right already goes to the kernel at once; for the rest a plan
// is made once per call and read by all threads, and Tiles are the buffers of one thread.
#include "core/tensor/tile_loop.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "core/base/ceil_div.h"
#include "core/device/allocator.h"
#include "core/device/cpu_features.h"
#include "core/device/threads.h"
#include "core/tensor/dims.h"
#include "core/tensor/tile_plan.h"

namespace rushlight {

ISA_TABLES(CastLoops, cast_loops)

namespace {

constexpr int64_t kShortRow = 128;  // bytes of the widest operand: to gather such rows costs less
constexpr int64_t kFilledRow = 64;  // rows that are worth filling a buffer for each
constexpr int64_t kGrain = 32768;   // elements that are worth a thread
constexpr size_t kMaxItem = sizeof(std::complex<double>);

// The buffers of one thread: one block, cut into what the lanes need, which are at most kLanes.
template <int kLanes>
class Tiles {
 public:
  // The result goes where its first element is at `result`.
  Tiles(const TilePlan& plan, char* result, int64_t most)
      : plan_(plan),
        result_(result),
        most_(std::min(most, plan.tile())),
        single_(plan.single_in_rows()) {
    for (const TileLane& lane : plan.lanes) {
      if (!lane.linear && !lane.single) bytes_ += tile_bytes(lane.item);
      if (lane.cast || lane.single) bytes_ += tile_bytes(lane.kernel_item);
    }
    block_ = static_cast<char*>(cpu_allocate(bytes_));
    char* next = block_;
    for (size_t k = 0; k < plan.lanes.size(); ++k) {
      const TileLane& lane = plan.lanes[k];
      if (!lane.linear && !lane.single)
        gathered_[k] = std::exchange(next, next + tile_bytes(lane.item));
      if (lane.cast || lane.single)
        converted_[k] = std::exchange(next, next + tile_bytes(lane.kernel_item));
      if (lane.single) fill_single(lane, converted_[k]);
    }
  }
  ~Tiles() { cpu_free(block_, bytes_); }
  Tiles(const Tiles&) = delete;

  PointwiseLoop loop() const {
    return single_ < 0 ? plan_.kernel.run : plan_.kernel.repeating[single_];
  }

  // Where the kernel finds elements [begin, begin + n) of operand k.
  const void* read(int k, int64_t begin, int64_t n) {
    const TileLane& lane = plan_.lanes[k];
    if (lane.single) return converted_[k];
    if (lane.same_rows && begin % plan_.inner() == 0 && n <= prepared_[k])
      return lane.cast ? converted_[k] : gathered_[k];
    const char* from;
    if (lane.linear) {
      from = lane.data + begin * lane.item;
    } else {
      from = gathered_[k];
      if (n > plan_.inner()) gather_rows(k, begin, n);
      else
        for_each_run(lane.data, plan_.sizes, lane.strides, begin, n,
                     [&](const char* p, int64_t stride, int64_t run, int64_t done) {
                       if (run == n && (stride == lane.item || k == single_)) from = p;
                       else if (run == n && stride == 0) repeat(k, p, n);
                       else
                         copy_run(gathered_[k] + done * lane.item, lane.item, p, stride, lane.item,
                                  run);
                     });
    }
    bool is_here = lane.cast || from == gathered_[k];
    prepared_[k] = is_here && begin % plan_.inner() == 0 ? n : 0;
    if (!lane.cast) return from;
    lane.cast(from, converted_[k], k == single_ ? 1 : n);
    return converted_[k];
  }

  // Where the kernel may write elements [begin, begin + n) of the result.
  void* target(int64_t begin, int64_t n) {
    const TileLane& lane = plan_.result();
    if (lane.cast) return converted_[plan_.operand_count];
    if (lane.linear) return result_ + begin * lane.item;
    char* target = gathered_[plan_.operand_count];
    for_each_run(result_, plan_.sizes, lane.strides, begin, n,
                 [&](char* p, int64_t stride, int64_t run, int64_t) {
                   if (run == n && stride == lane.item) target = p;
                 });
    return target;
  }

  // Brings what the kernel wrote at `written` to its place.
  void store(const void* written, int64_t begin, int64_t n) {
    const TileLane& lane = plan_.result();
    const char* from = static_cast<const char*>(written);
    if (lane.cast) {
      char* to = lane.linear ? result_ + begin * lane.item : gathered_[plan_.operand_count];
      lane.cast(written, to, n);
      from = to;
    }
    if (lane.linear) return;
    for_each_run(result_, plan_.sizes, lane.strides, begin, n,
                 [&](char* p, int64_t stride, int64_t run, int64_t done) {
                   const char* piece = from + done * lane.item;
                   if (piece != p) copy_run(p, stride, piece, lane.item, lane.item, run);
                 });
  }

 private:
  // Brings the whole rows that [begin, begin + n) is made of.
  void gather_rows(int k, int64_t begin, int64_t n) {
    const TileLane& lane = plan_.lanes[k];
    char* to = gathered_[k];
    repeated_[k] = nullptr;
    size_t last = plan_.sizes.size() - 1, next = last - 1;
    int64_t inner = plan_.inner(), item = lane.item, most = plan_.sizes[next];
    ShapeRef sizes = ShapeRef(plan_.sizes).first(next),
             strides = ShapeRef(lane.strides).first(next);
    for (int64_t row = begin / inner, end = row + n / inner; row < end;) {
      int64_t rows = std::min(end - row, most - row % most);
      const char* from =
          lane.data + offset_of(sizes, strides, row / most) + row % most * lane.strides[next];
      copy_rows(to, {inner * item, item}, from, {lane.strides[next], lane.strides[last]}, item,
                rows, inner);
      to += rows * inner * item;
      row += rows;
    }
  }
  // Fills the buffer of lane k with one element, unless it is there already.
  void repeat(int k, const char* element, int64_t n) {
    if (repeated_[k] == element && repeats_[k] >= n) return;
    repeated_[k] = element;
    repeats_[k] = n;
    int64_t item = plan_.lanes[k].item;
    copy_run(gathered_[k], item, element, 0, item, n);
  }
  size_t tile_bytes(int64_t item) const {
    return (size_t(most_ * item) + kAlignment - 1) & ~(kAlignment - 1);
  }
  void fill_single(const TileLane& lane, char* tile) {
    alignas(16) char value[kMaxItem];
    if (lane.cast) lane.cast(lane.data, value, 1);
    else std::memcpy(value, lane.data, size_t(lane.item));
    copy_run(tile, lane.kernel_item, value, 0, lane.kernel_item, most_);
  }

  const TilePlan& plan_;
  char* result_;
  int64_t most_;
  int single_;  // see single_in_rows
  size_t bytes_ = 0;
  char* block_;
  // By lane: elements as they are in memory, and as the kernel takes them.
  char* gathered_[kLanes] = {};
  char* converted_[kLanes];
  const char* repeated_[kLanes] = {};  // the element that fills gathered_
  int64_t repeats_[kLanes];
  int64_t prepared_[kLanes] = {};  // elements from the start of a row that are here
};

template <int kLanes>
void run_tiles(const TilePlan& plan, char* result, int64_t begin, int64_t end) {
  Tiles<kLanes> tiles(plan, result, end - begin);
  PointwiseLoop loop = tiles.loop();
  int64_t inner = plan.inner(), most = plan.tile();
  if (inner < kRowTile) most -= most % inner;
  for (int64_t i = begin; i < end;) {
    // A piece of one row, or whole rows.
    int64_t n = std::min(most, end - i);
    if (i % inner || n < inner || inner >= kRowTile) n = std::min(n, inner - i % inner);
    else n -= n % inner;
    const void* operands[kLanes];
    for (int k = 0; k < plan.operand_count; ++k) operands[k] = tiles.read(k, i, n);
    void* target = tiles.target(i, n);
    loop(operands, plan.scalars, target, n);
    tiles.store(target, i, n);
    i += n;
  }
}

// The loop that takes the rows of all lanes as they lie in memory.
struct RowLoop {
  PointwiseLoop run = nullptr;  // null when there is none
  int filled = -1;              // an operand whose one element along a row fills a buffer, or -1
};

RowLoop row_loop(const TilePlan& plan) {
  int64_t widest = 1;
  for (const TileLane& lane : plan.lanes) widest = std::max(widest, lane.item);
  if (plan.inner() * widest <= kShortRow) return {};
  int single = -1;
  for (int k = 0; k <= plan.operand_count; ++k) {
    const TileLane& lane = plan.lanes[k];
    if (lane.cast) return {};
    if (lane.strides.back() == lane.item) continue;
    if (single >= 0 || lane.strides.back() != 0) return {};
    single = k;
  }
  if (single < 0) return {plan.kernel.run};
  if (single < kMaxRepeating && plan.kernel.repeating[single])
    return {plan.kernel.repeating[single]};
  if (plan.inner() < kFilledRow) return {};
  return {plan.kernel.run, single};
}

void run_rows(const TilePlan& plan, RowLoop loop, char* result, int64_t begin, int64_t end) {
  int64_t inner = plan.inner(), longest = loop.filled < 0 ? inner : plan.tile();
  alignas(kAlignment) char buffer[kTileBytes];
  const void* in_buffer = nullptr;  // the element that fills it
  auto fill = [&](const void* element) {
    if (in_buffer == element) return;
    in_buffer = element;
    int64_t item = plan.lanes[loop.filled].item;
    copy_run(buffer, item, static_cast<const char*>(element), 0, item, std::min(inner, longest));
  };
  size_t last = plan.sizes.size() - 1, next = last ? last - 1 : 0;
  int64_t most = last ? plan.sizes[next] : 1;
  ShapeRef outer = ShapeRef(plan.sizes).first(next);
  int64_t steps[kMaxLanes + 1];
  for (int k = 0; k <= plan.operand_count; ++k) steps[k] = last ? plan.lanes[k].strides[next] : 0;
  for (int64_t i = begin; i < end;) {
    // Rows, or a part of one, that lie at equal distances.
    int64_t row = i / inner, column = i % inner;
    int64_t n = std::min({inner - column, end - i, longest});
    int64_t rows = n < inner ? 1 : std::min((end - i) / inner, most - row % most);
    auto start = [&](char* data, int k) {
      const TileLane& lane = plan.lanes[k];
      return data + offset_of(outer, ShapeRef(lane.strides).first(next), row / most) +
             row % most * steps[k] + column * lane.strides[last];
    };
    const void* operands[kMaxLanes];
    for (int k = 0; k < plan.operand_count; ++k) operands[k] = start(plan.lanes[k].data, k);
    char* to = start(result, plan.operand_count);
    for (int64_t r = 0; r < rows; ++r, to += steps[plan.operand_count]) {
      const void* element = nullptr;
      if (loop.filled >= 0) {
        fill(operands[loop.filled]);
        element = std::exchange(operands[loop.filled], buffer);
      }
      loop.run(operands, plan.scalars, to, n);
      if (loop.filled >= 0) operands[loop.filled] = element;
      for (int k = 0; k < plan.operand_count; ++k)
        operands[k] = static_cast<const char*>(operands[k]) + steps[k];
    }
    i += rows * n;
  }
}

// The loop that every tensor can be handed to whole, without tiles.
struct DirectLoop {
  PointwiseLoop run = nullptr;         // null when there is none
  size_t single = kMaxLanes;           // the operand that is one element, if there is one
  alignas(16) char element[kMaxItem];  // as the kernel takes it
};

DirectLoop direct_loop(const TileOperand& result, std::span<const TileOperand> operands,
                       const PointwiseKernel& kernel) {
  const Tensor& out = *result.tensor;
  DirectLoop loop;
  if (out.dtype() != result.kernel_dtype || !out.is_dense()) return loop;
  for (size_t k = 0; k < operands.size(); ++k) {
    const TileOperand& operand = operands[k];
    if (operand.tensor->dtype() == operand.kernel_dtype && same_order(*operand.tensor, out))
      continue;
    if (operand.tensor->numel() != 1 || loop.single < kMaxLanes || k >= kMaxRepeating ||
        !kernel.repeating[k])
      return loop;
    loop.single = k;
  }
  loop.run = kernel.run;
  if (loop.single < kMaxLanes) {
    const TileOperand& one = operands[loop.single];
    cast_loop(one.tensor->dtype(), one.kernel_dtype)(one.tensor->data(), loop.element, 1);
    loop.run = kernel.repeating[loop.single];
  }
  return loop;
}

void run_direct(const DirectLoop& loop, char* to, std::span<const TileOperand> operands,
                const void* scalars, int64_t begin, int64_t end) {
  const void* in[kMaxLanes];
  for (size_t k = 0; k < operands.size(); ++k) {
    const Tensor& tensor = *operands[k].tensor;
    in[k] =
        k == loop.single ? loop.element : tensor.data<char>() + begin * int64_t(tensor.itemsize());
  }
  loop.run(in, scalars, to, end - begin);
}

// Gives the loop copies of the operands that lie across the result; they live as long as what is
// returned.
std::vector<Tensor> reorder_crossing(TilePlan& plan, std::span<const TileOperand> operands) {
  std::vector<Tensor> copies;
  for (size_t k = 0; k < operands.size(); ++k) {
    TileLane& lane = plan.lanes[k];
    if (!lies_across(plan, lane)) continue;
    Tensor copy = empty(plan.sizes, operands[k].tensor->dtype());
    Shape strides = ordered_strides(plan, lane.item);
    copy_strided(plan.sizes, lane.item, copy.data<char>(), strides, lane.data, lane.strides);
    lane.data = copy.data<char>();
    lane.strides = strides;
    lane.linear = true;
    copies.push_back(copy);
  }
  return copies;
}

// Runs a plan on elements [begin, end) of a result whose first element is at `result`.
void run_plan(const TilePlan& plan, RowLoop row_loop, char* result, int64_t begin, int64_t end) {
  if (row_loop.run) run_rows(plan, row_loop, result, begin, end);
  else if (plan.operand_count <= kMaxOperands)
    run_tiles<kMaxOperands + 1>(plan, result, begin, end);
  else run_tiles<kMaxLanes + 1>(plan, result, begin, end);
}

void run_slabs(const TilePlan& plan, const TileSlabs& slabs, char* result) {
  int64_t length = plan.sizes[slabs.dim], per_dim = ceil_div(length, slabs.most);
  int64_t count = plan.numel / (length * slabs.inner) * per_dim;
  parallel_for(0, count, 1, [&](int64_t first, int64_t last) {
    std::vector<TileLane> lanes(plan.lanes.begin(), plan.lanes.end());
    std::vector<std::optional<CpuBuffer>> buffers(lanes.size());
    for (size_t k = 0; k < lanes.size(); ++k) {
      if (!lies_across(plan, lanes[k])) continue;
      lanes[k].strides = ordered_strides(plan, lanes[k].item);
      lanes[k].linear = true;
      buffers[k].emplace(size_t(slabs.most * slabs.inner * lanes[k].item));
    }
    TilePlan own = plan;
    own.lanes = lanes;
    RowLoop loop = row_loop(own);
    for (int64_t i = first; i < last; ++i) {
      int64_t index = i % per_dim * slabs.most, n = std::min(slabs.most, length - index);
      int64_t begin = (i / per_dim * length + index) * slabs.inner;
      Shape sizes(ShapeRef(plan.sizes).subspan(slabs.dim));
      sizes[0] = n;
      for (size_t k = 0; k < lanes.size(); ++k) {
        if (!buffers[k]) continue;
        const TileLane& from = plan.lanes[k];
        char* to = static_cast<char*>(buffers[k]->data());
        copy_strided(sizes, from.item, to, ShapeRef(lanes[k].strides).subspan(slabs.dim),
                     from.data + offset_of(plan.sizes, from.strides, begin),
                     ShapeRef(from.strides).subspan(slabs.dim));
        lanes[k].data = to - begin * from.item;
      }
      run_plan(own, loop, result, begin, begin + n * slabs.inner);
    }
  });
}

}  // namespace

bool same_order(const Tensor& tensor, const Tensor& out) {
  if (out.is_contiguous()) return tensor.is_contiguous() && tensor.numel() == out.numel();
  return tensor.sizes() == out.sizes() && tensor.strides() == out.strides();
}

int active_isa_index() {
  static const int index = std::min(int(active_isa()), kIsaCount - 1);
  return index;
}

CastLoop cast_loop(DType from, DType to) {
  CastLoop loop = active(cast_loops_sets).run[int(from)][int(to)];
  return loop ? loop : cast_loops_sets[0]->run[int(from)][int(to)];
}

void run_tile_loop(const TileOperand& result, std::span<const TileOperand> operands,
                   const PointwiseKernel& kernel, const void* scalars) {
  int64_t numel = result.tensor->numel();
  if (numel == 0) return;
  char* data = result.tensor->data<char>();
  if (DirectLoop direct = direct_loop(result, operands, kernel); direct.run) {
    int64_t item = int64_t(result.tensor->itemsize());
    parallel_for(0, numel, kGrain, [&](int64_t begin, int64_t end) {
      run_direct(direct, data + begin * item, operands, scalars, begin, end);
    });
    return;
  }
  TileLane few[kMaxOperands + 1];
  std::vector<TileLane> many;
  if (operands.size() > kMaxOperands) many.resize(operands.size() + 1);
  std::span<TileLane> lanes = many.empty() ? std::span(few, operands.size() + 1) : std::span(many);
  TilePlan plan = make_plan(lanes, result, operands, kernel, scalars);
  if (auto slabs = slabs_of(plan)) return run_slabs(plan, *slabs, data);
  std::vector<Tensor> copies = reorder_crossing(plan, operands);
  RowLoop loop = row_loop(plan);
  parallel_for(0, numel, kGrain,
               [&](int64_t begin, int64_t end) { run_plan(plan, loop, data, begin, end); });
}

// ---- loops by ranges ----------------------------------------------------------------------------

struct RangedLoop::Parts {
  std::vector<TileOperand> operands;
  PointwiseKernel kernel;
  const void* scalars;
  int64_t item;  // bytes of an element of the result
  DirectLoop direct;
  // Of a loop that is not direct:
  std::vector<TileLane> lanes = {};
  TilePlan plan = {};
  std::vector<Tensor> copies = {};
  RowLoop row_loop = {};
};

RangedLoop::RangedLoop(const TileOperand& result, std::span<const TileOperand> operands,
                       const PointwiseKernel& kernel, const void* scalars)
    : parts_(new Parts{{operands.begin(), operands.end()},
                       kernel,
                       scalars,
                       int64_t(result.tensor->itemsize()),
                       direct_loop(result, operands, kernel)}) {
  if (parts_->direct.run) return;
  parts_->lanes.resize(operands.size() + 1);
  parts_->plan = make_plan(parts_->lanes, result, operands, kernel, scalars);
  parts_->copies = reorder_crossing(parts_->plan, operands);
  parts_->row_loop = row_loop(parts_->plan);
}
RangedLoop::~RangedLoop() = default;

void RangedLoop::run(int64_t begin, int64_t end, char* to) const {
  const Parts& p = *parts_;
  if (p.direct.run) run_direct(p.direct, to, p.operands, p.scalars, begin, end);
  else run_plan(p.plan, p.row_loop, to - begin * p.item, begin, end);
}

}  // namespace rushlight
