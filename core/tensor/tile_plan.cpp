// Defines how loops over tensors are planned.
#include "core/tensor/tile_plan.h"

#include <algorithm>

#include "core/tensor/dims.h"

namespace rushlight {
namespace {

constexpr int64_t kApartTile = 256;  // elements of a tile, with gaps that take more of the cache
constexpr int64_t kCrossing = 16;    // elements side by side that are worth moving in squares

void describe(TileLane& lane, const TileOperand& operand, bool is_result) {
  const Tensor& tensor = *operand.tensor;
  if (!is_result) lane.data = static_cast<char*>(tensor.data());
  lane.item = int64_t(tensor.itemsize());
  lane.kernel_item = int64_t(dtype_size(operand.kernel_dtype));
  if (tensor.dtype() != operand.kernel_dtype)
    lane.cast = is_result ? cast_loop(operand.kernel_dtype, tensor.dtype())
                          : cast_loop(tensor.dtype(), operand.kernel_dtype);
}

// Brings every lane into the iteration order of the result and finds the linear ones.
void coalesce(TilePlan& plan, const Tensor& out, std::span<const TileOperand> operands) {
  std::span<TileLane> lanes = plan.lanes;
  Shape* strides[kMaxLanes + 1];
  strides[0] = &lanes.back().strides;  // the first decides the order
  lanes.back().strides = out.strides();
  for (size_t k = 0; k < operands.size(); ++k) {
    strides[k + 1] = &lanes[k].strides;
    lanes[k].strides = broadcast_strides(*operands[k].tensor, out.sizes());
  }
  plan.sizes = out.sizes();
  join_dims(plan.sizes, {strides, lanes.size()});
  for (TileLane& lane : lanes) {
    for (int64_t& stride : lane.strides) stride *= lane.item;
    int64_t expected = lane.item;
    lane.same_rows =
        plan.sizes.size() > 1 && std::all_of(lane.strides.begin(), lane.strides.end() - 1,
                                             [](int64_t stride) { return stride == 0; });
    lane.linear = true;
    for (size_t d = plan.sizes.size(); d-- > 0;) {
      lane.linear &= lane.strides[d] == expected;
      expected *= plan.sizes[d];
    }
  }
}

}  // namespace

int64_t TilePlan::tile() const {
  int64_t widest = 1;
  for (const TileLane& lane : lanes) {
    if (!lane.linear && !lane.single && lane.strides.back() > lane.item) return kApartTile;
    widest = std::max({widest, lane.item, lane.kernel_item});
  }
  return kTileBytes / widest;
}

int TilePlan::single_in_rows() const {
  for (int k = 0; k < std::min(operand_count, kMaxRepeating); ++k)
    if (inner() >= kRowTile && kernel.repeating[k] && lanes[size_t(k)].strides.back() == 0 &&
        !lanes[size_t(k)].single)
      return k;
  return -1;
}

TilePlan make_plan(std::span<TileLane> lanes, const TileOperand& result,
                   std::span<const TileOperand> operands, const PointwiseKernel& kernel,
                   const void* scalars) {
  const Tensor& out = *result.tensor;
  TilePlan plan;
  plan.lanes = lanes;
  plan.numel = out.numel();
  plan.kernel = kernel;
  plan.scalars = scalars;
  plan.operand_count = int(operands.size());
  describe(plan.lanes[operands.size()], result, true);
  bool flat = out.is_dense();  // one dim serves: the others are in its order, or single elements
  for (size_t k = 0; k < operands.size(); ++k) {
    TileLane& lane = plan.lanes[k];
    const Tensor& tensor = *operands[k].tensor;
    describe(lane, operands[k], false);
    lane.single = tensor.numel() == 1 && plan.numel != 1;
    lane.linear = same_order(tensor, out);
    flat &= lane.single || lane.linear;
  }
  plan.lanes[operands.size()].linear = flat;
  if (!flat) {
    coalesce(plan, out, operands);
    return plan;
  }
  plan.sizes.push_back(plan.numel);
  for (TileLane& lane : plan.lanes) lane.strides.push_back(lane.single ? 0 : lane.item);
  return plan;
}

bool lies_across(const TilePlan& plan, const TileLane& lane) {
  if (lane.single || plan.inner() < kCrossing || lane.strides.back() <= lane.item) return false;
  bool crosses = false;
  size_t last = plan.sizes.size() - 1;
  for (size_t d = 0; d < last; ++d) {
    if (lane.strides[d] == 0) return false;
    crosses |= lane.strides[d] == lane.item && plan.sizes[d] >= kCrossing;
  }
  return crosses;
}

Shape ordered_strides(const TilePlan& plan, int64_t item) {
  Shape strides(plan.sizes.size());
  for (size_t d = strides.size(); d-- > 0; item *= plan.sizes[d]) strides[d] = item;
  return strides;
}

std::optional<TileSlabs> slabs_of(const TilePlan& plan) {
  constexpr int64_t kSlab = 1 << 17, kMostSlab = 1 << 19;  // bytes
  size_t dim = plan.sizes.size();
  int64_t inner = 1, item = 1;
  for (const TileLane& lane : plan.lanes.first(size_t(plan.operand_count))) {
    if (!lies_across(plan, lane)) continue;
    item = std::max(item, lane.item);
    for (size_t d = 0; d < dim; ++d)
      if (lane.strides[d] == lane.item) dim = d;
  }
  if (dim == plan.sizes.size() || plan.numel * item <= kSlab) return {};
  for (size_t d = dim + 1; d < plan.sizes.size(); ++d) inner *= plan.sizes[d];
  int64_t most = std::max(kSlab / (inner * item), kCrossing);
  if (most * inner * item > kMostSlab) return {};
  for (; dim > 0 && most >= 2 * plan.sizes[dim]; --dim) {
    most /= plan.sizes[dim];
    inner *= plan.sizes[dim];
  }
  return TileSlabs{dim, inner, std::min(most, plan.sizes[dim])};
}

}  // namespace rushlight
