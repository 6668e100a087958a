// Defines the kernels of index tensors on CUDA. Values that could meet in one place are first
// brought in order by a sort of their offsets.
#include <bit>
#include <numeric>

#include "core/base/ceil_div.h"
#include "core/device/cuda.h"
#include "core/device/cuda_capture.h"
#include "core/device/cuda_kernel_map.h"
#include "core/device/cuda_memory.h"
#include "core/ops/index/index_cuda.h"
#include "core/ops/sort/sort.h"
#include "core/tensor/cuda_types.h"
#include "core/tensor/dims.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

extern const char* const index_cu;
extern const char* const index_move_cu;
extern const char* const index_combine_cu;

namespace {

cuda::CudaModule index_module("index", index_cu);
cuda::CudaKernel add_offsets(index_module, "add_offsets"),
    offsets_along_kernel(index_module, "offsets_along"), find_bounds(index_module, "find_bounds"),
    require_range(index_module, "require_range"), count_flags(index_module, "count_flags"),
    sum_up(index_module, "sum_up"), list_flags(index_module, "list_flags");

struct CombineKernel {
  cuda::CudaModule module;
  cuda::CudaKernel combine_picked{module, "combine_picked"}, combine_parts{module, "combine_parts"};

  explicit CombineKernel(std::pair<DType, Scatter> key)
      : module(std::string("index_") + name(key.second) + "<" + dtype_name(key.first) + ">",
               index_combine_cu,
               cuda::define("DTYPE", device_type(key.first)) +
                   cuda::define("COMBINE", name(key.second))) {}

  static const char* name(Scatter how) {
    switch (how) {
      case Scatter::multiply: return "wrapped_product";
      case Scatter::maximum: return "larger";
      case Scatter::minimum: return "smaller";
      default: return "wrapped_sum";
    }
  }
};

void declare_kernels() {
  for (int64_t item : {1, 2, 4, 8, 16}) cuda::kernels_of<MoveKernels>(item);
  for (DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int64,
                      DType::int32, DType::uint8, DType::bool_, DType::complex64})
    cuda::kernels_of<CombineKernel>(std::pair(dtype, Scatter::add));
  for (Scatter how : {Scatter::multiply, Scatter::maximum, Scatter::minimum})
    cuda::kernels_of<CombineKernel>(std::pair(DType::float32, how));
}
const cuda::CudaKernelFamily kernels(declare_kernels);

cuda::Dim3 grid_of(int64_t numel) { return {cuda::blocks_for(numel, kIndexThreads)}; }
constexpr cuda::Dim3 kBlock{kIndexThreads};

int64_t& last_size(IndexLayout& layout) { return layout.sizes[layout.dims - 1]; }
int64_t& last_stride(IndexLayout& layout) { return layout.strides[layout.dims - 1]; }

// Elements that always lie together move as one of up to 16 bytes; returns its size.
int64_t widen(PickedArgs& args, const Picked& picked, int64_t item, const void* dense) {
  if (args.after.dims == 0 || last_stride(args.after) != item) return item;
  int64_t all = picked.unit * item | last_size(args.after) * item;
  all |= int64_t(reinterpret_cast<uintptr_t>(args.picked) | reinterpret_cast<uintptr_t>(dense));
  for (int d = 0; d < args.before.dims; ++d) all |= args.before.strides[d];
  for (int d = 0; d + 1 < args.after.dims; ++d) all |= args.after.strides[d];
  int64_t wide = std::min<int64_t>(16, all & -all);  // the power of two that divides all
  if (wide <= item) return item;
  last_size(args.after) /= wide / item;
  last_stride(args.after) = wide;
  args.after_count /= wide / item;
  args.total /= wide / item;
  return wide;
}

PickedArgs args_of(const Tensor& input, const Picked& picked) {
  auto item = int64_t(input.itemsize());
  auto in_bytes = [&](Shape strides) {
    for (int64_t& stride : strides) stride *= item;
    return strides;
  };
  PickedArgs args;
  args.picked = static_cast<char*>(input.address());
  args.offsets = static_cast<const int64_t*>(picked.offsets.address());
  args.order = nullptr;
  args.offset_bytes = item;
  args.positions = picked.offsets.numel();
  args.after_count = checked_numel(picked.after);
  args.total = checked_numel(picked.before) * args.positions * args.after_count;
  args.before = index_layout(picked.before, in_bytes(picked.before_strides));
  args.after = index_layout(picked.after, in_bytes(picked.after_strides));
  return args;
}

void combine(const PickedArgs& args, const Tensor& input, const Tensor& dense, bool single,
             Scatter how) {
  CHECK(how == Scatter::add || how == Scatter::multiply || !is_complex(input.dtype()),
        ErrorKind::kNotImplemented, "complex numbers have no order");
  auto& kernels = cuda::kernels_of<CombineKernel>(std::pair(input.dtype(), how));
  PickedArgs by_chunk = args;
  int64_t chunks = by_chunk.positions = ceil_div(args.positions, kRunChunk);
  by_chunk.total = args.total / args.positions * chunks;
  bool in_parts = args.order && chunks > 1;
  // Halves and small integers are combined in 4 bytes.
  size_t bytes = in_parts ? size_t(by_chunk.total) * 2 * std::max<size_t>(4, input.itemsize()) : 0;
  cuda::CudaBuffer parts(bytes, input.device().index);
  kernels.combine_picked.launch(grid_of(args.total), kBlock, 0, args, dense.address(), single,
                                parts.data(), chunks);
  if (in_parts)
    kernels.combine_parts.launch(grid_of(by_chunk.total), kBlock, 0, args, by_chunk, parts.data());
}

}  // namespace

MoveKernels::MoveKernels(int64_t item)
    : module("index_move<" + std::to_string(item) + ">", index_move_cu,
             cuda::define("ITEM", item == 16 ? "Item16"
                                             : device_type(item == 1   ? DType::uint8
                                                           : item == 2 ? DType::uint16
                                                           : item == 4 ? DType::uint32
                                                                       : DType::uint64))) {}

IndexLayout index_layout(const Shape& sizes, const Shape& strides) {
  // Elements are numbered in row-major order of the sizes.
  Shape dims = sizes, numbers = contiguous_strides(sizes), places = strides;
  Shape* lanes[] = {&numbers, &places};
  join_dims(dims, lanes);
  CHECK(dims.size() <= kMaxIndexDims, ErrorKind::kNotImplemented, "a CUDA kernel walks at most ",
        kMaxIndexDims, " dims that cannot be joined, but the shape is ", sizes,
        ". Call contiguous() first.");
  IndexLayout layout;
  layout.dims = int32_t(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    layout.sizes[d] = dims[d];
    layout.strides[d] = places[d];
  }
  return layout;
}

void add_offsets_cuda(const Tensor& to, const Shape& shape, const Tensor& index, int64_t size,
                      int64_t stride) {
  cuda::DeviceGuard guard(to.device().index);
  add_offsets.launch(grid_of(to.numel()), kBlock, 0, to.address(), index.address(),
                     index_layout(shape, broadcast_strides(index, shape)), to.numel(), size,
                     stride);
}

Tensor offsets_along(const Tensor& self, size_t dim, const Tensor& index) {
  Tensor offsets = empty(Shape{index.numel()}, DType::int64, self.device());
  Shape strides = self.strides();
  strides[dim] = 0;
  cuda::DeviceGuard guard(self.device().index);
  offsets_along_kernel.launch(grid_of(index.numel()), kBlock, 0, offsets.address(), index.address(),
                              index_layout(index.sizes(), strides), index.numel(),
                              self.strides()[dim]);
  return offsets;
}

void read_picked_cuda(const Tensor& input, const Picked& picked, const Tensor& out) {
  PickedArgs args = args_of(input, picked);
  int64_t item = widen(args, picked, int64_t(input.itemsize()), out.address());
  cuda::DeviceGuard guard(out.device().index);
  cuda::kernels_of<MoveKernels>(item).read_picked.launch(grid_of(args.total), kBlock, 0, args,
                                                         out.address());
}

void write_picked_cuda(const Tensor& input, const Picked& picked, const Tensor& source,
                       Scatter how) {
  Shape sizes = picked.sizes(), strides = broadcast_strides(source, sizes);
  bool single = true;
  for (size_t d = 0; d < sizes.size(); ++d) single &= strides[d] == 0 || sizes[d] == 1;
  Tensor dense = source;
  if (!single && !(source.is_contiguous() && source.numel() == checked_numel(sizes))) {
    dense = empty(sizes, source.dtype(), source.device());
    copy_into(dense, source);
  }
  PickedArgs args = args_of(input, picked);
  Sorted sorted;
  bool order_matters = how != Scatter::write || !single;
  if (order_matters && !picked.distinct && args.positions > 1) {
    sorted = sort_offsets(picked.offsets, picked.reach);
    args.offsets = static_cast<const int64_t*>(sorted.values.address());
    args.order = static_cast<const int64_t*>(sorted.indices.address());
  }
  cuda::DeviceGuard guard(input.device().index);
  if (how == Scatter::write) {
    auto item = int64_t(input.itemsize());
    if (!single) item = widen(args, picked, item, dense.address());
    cuda::kernels_of<MoveKernels>(item).write_picked.launch(grid_of(args.total), kBlock, 0, args,
                                                            dense.address(), single);
  } else {
    combine(args, input, dense, single, how);
  }
}

Tensor nonzero_places_cuda(const Tensor& flags) {
  int64_t numel = flags.numel(), ndim = flags.dim();
  auto listed = [&](int64_t count) {
    return empty_strided(Shape{count, ndim}, Shape{1, std::max<int64_t>(count, 1)}, DType::int64,
                         flags.device());
  };
  if (numel == 0) return listed(0);
  cuda::DeviceGuard guard(flags.device().index);
  cuda::Dim3 grid{cuda::blocks_for(numel, kFlagsPerBlock)};
  Tensor starts = empty(Shape{int64_t(grid.x) + 1}, DType::int64, flags.device());
  count_flags.launch(grid, kBlock, 0, flags.address(), numel, starts.address());
  sum_up.launch({1}, {1024}, 0, starts.address(), int64_t(grid.x));
  int64_t count = item(alias(starts, {}, {}, grid.x)).to<int64_t>();
  Tensor places = listed(count);
  if (count > 0 && ndim > 0) {
    IndexLayout shape;
    shape.dims = int32_t(ndim);
    CHECK(ndim <= kMaxIndexDims, ErrorKind::kNotImplemented, "a CUDA kernel walks at most ",
          kMaxIndexDims, " dims, but the shape is ", flags.sizes(), ".");
    std::ranges::copy(flags.sizes(), shape.sizes);
    list_flags.launch(grid, kBlock, 0, flags.address(), numel, starts.address(), shape,
                      places.address(), count);
  }
  return places;
}

bool leaves_check_to_device(const Tensor& numbers, int64_t first, int64_t end) {
  if (!numbers.device().is_cuda() ||
      !cuda::is_capturing(cuda::current_stream(numbers.device().index)))
    return false;
  cuda::DeviceGuard guard(numbers.device().index);
  require_range.launch(grid_of(numbers.numel()), kBlock, 0,
                       static_cast<const int64_t*>(numbers.address()), numbers.numel(), first, end);
  return true;
}

Bounds bounds_of_cuda(const Tensor& numbers) {
  cuda::DeviceGuard guard(numbers.device().index);
  Tensor bounds = empty(Shape{2}, DType::int64, numbers.device());
  // Any number first: both ends begin with element 0.
  for (int64_t end : {0, 1})
    cuda::copy_bytes(static_cast<int64_t*>(bounds.address()) + end, bounds.device(),
                     numbers.address(), numbers.device(), sizeof(int64_t));
  // A few blocks, that the ends are not contended for.
  int64_t blocks = std::min<int64_t>(grid_of(numbers.numel()).x, 1024);
  find_bounds.launch({unsigned(blocks)}, kBlock, 0, numbers.address(), numbers.numel(),
                     bounds.address());
  Tensor here = empty(Shape{2}, DType::int64);
  copy_into(here, bounds);
  return {here.data<int64_t>()[0], here.data<int64_t>()[1]};
}

}  // namespace rushlight
