// Defines sorting and searching on CUDA: rows along the last dim, in shared memory where they are
// short enough.
#include <algorithm>
#include <bit>

#include "core/base/ceil_div.h"
#include "core/device/cuda_kernel.h"
#include "core/device/cuda_kernel_map.h"
#include "core/ops/shape/shape.h"
#include "core/ops/sort/sort.h"
#include "core/ops/sort/sort_args.h"
#include "core/tensor/cuda_types.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

extern const char* const sort_cu;

namespace {

bool has_wide_key(DType dtype) { return dtype_size(dtype) == 8; }

struct SortKernels {
  cuda::CudaModule module;
  cuda::CudaKernel sort_short{module, "sort_short"}, make_keys{module, "make_keys"},
      count_bytes{module, "count_bytes"}, sum_counts{module, "sum_counts"},
      move_keys{module, "move_keys"}, take_sorted{module, "take_sorted"}, search{module, "search"};

  explicit SortKernels(DType dtype)
      : module("sort<" + std::string(dtype_name(dtype)) + ">", sort_cu,
               cuda::define("DTYPE", device_type(dtype)) +
                   cuda::define("KEY", has_wide_key(dtype) ? "uint64_t" : "uint32_t")) {}
};

void declare_sorts() {
  for (DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16, DType::int64,
                      DType::int32, DType::uint8, DType::bool_})
    cuda::kernels_of<SortKernels>(dtype);
}
const cuda::CudaKernelFamily sorts(declare_sorts);

// Which bits of the keys differ at all.
struct KeyBits {
  int first, end;
};
KeyBits key_bits(DType dtype) {
  if (dtype == DType::bfloat16) return {16, 32};
  if (dtype == DType::float16) return {8, 32};  // as floats they end in 13 equal bits
  return {0, int(dtype_size(dtype)) * 8};
}

void sort_long(SortKernels& kernels, const Tensor& input, const Tensor& values,
               const Tensor& indices, int64_t rows, int64_t length, int64_t keep, bool descending,
               KeyBits bits) {
  CHECK(length < int64_t(1) << 32, ErrorKind::kNotImplemented, "cannot sort rows of ", length,
        " elements on CUDA. The limit is 2^32 - 1.");
  Device device = input.device();
  int64_t tiles = ceil_div(length, kSortTile);
  DType key_dtype = has_wide_key(input.dtype()) ? DType::uint64 : DType::uint32;
  Tensor keys = empty(input.sizes(), key_dtype, device),
         moved_keys = empty(input.sizes(), key_dtype, device);
  Tensor places = empty(input.sizes(), DType::uint32, device),
         moved_places = empty(input.sizes(), DType::uint32, device);
  Tensor counts = empty(Shape{rows, 256, tiles}, DType::uint32, device),
         totals = empty(Shape{rows, 256}, DType::uint32, device);
  const void *from = input.address(), *earlier = nullptr;
  kernels.make_keys.launch({cuda::blocks_for(input.numel(), kSortThreads)}, {kSortThreads}, 0, from,
                           keys.address(), input.numel(), descending);
  cuda::Dim3 grid{cuda::blocks_for(rows * tiles, 1)}, block{kSortThreads};
  auto scanners = unsigned(std::min<int64_t>((tiles + 31) / 32 * 32, kSortThreads));
  for (int32_t shift = bits.first; shift < bits.end; shift += 8) {
    kernels.count_bytes.launch(grid, block, 0, keys.address(), counts.address(), length, tiles,
                               shift);
    kernels.sum_counts.launch({cuda::blocks_for(rows * 256, 1)}, {scanners}, 0, counts.address(),
                              totals.address(), tiles);
    kernels.move_keys.launch(grid, block, 0, keys.address(), earlier, moved_keys.address(),
                             moved_places.address(), counts.address(), totals.address(), length,
                             tiles, shift);
    std::swap(keys, moved_keys);
    std::swap(places, moved_places);
    earlier = places.address();
  }
  kernels.take_sorted.launch({cuda::blocks_for(values.numel(), kSortThreads)}, block, 0, from,
                             earlier, values.address(), indices.address(), values.numel(), length,
                             keep);
}

void sort_short(SortKernels& kernels, const Tensor& input, const Tensor& values,
                const Tensor& indices, int64_t rows, int64_t length, int64_t keep,
                bool descending) {
  auto width = int32_t(std::bit_ceil(uint64_t(length)));
  // Rows of a few elements share a block.
  auto rows_per_block = int32_t(std::clamp<int64_t>(rows, 1, std::max(1, 1024 / width)));
  unsigned pair = (has_wide_key(input.dtype()) ? 8 : 4) + 4;
  kernels.sort_short.launch({cuda::blocks_for(rows, rows_per_block)}, {kSortThreads},
                            unsigned(width * rows_per_block) * pair, input.address(),
                            values.address(), indices.address(), rows, int32_t(length), width,
                            rows_per_block, int32_t(keep), descending);
}

// Rows of a contiguous tensor.
Sorted sort_last(const Tensor& input, int64_t keep, bool descending, KeyBits bits) {
  int64_t length = input.size(-1), rows = input.numel() / length;
  Shape sizes = input.sizes();
  sizes.back() = keep;
  Sorted sorted{empty(sizes, input.dtype(), input.device()),
                empty(sizes, DType::int64, input.device())};
  cuda::DeviceGuard guard(input.device().index);
  auto& kernels = cuda::kernels_of<SortKernels>(input.dtype());
  if (length <= kSortShared)
    sort_short(kernels, input, sorted.values, sorted.indices, rows, length, keep, descending);
  else
    sort_long(kernels, input, sorted.values, sorted.indices, rows, length, keep, descending, bits);
  return sorted;
}

}  // namespace

Sorted sort_rows_cuda(const Tensor& input, int64_t dim, int64_t keep, bool descending) {
  if (input.dim() == 0) {
    Sorted one = sort_last(alias(input, Shape{1}, Shape{1}, input.offset()), 1, descending,
                           key_bits(input.dtype()));
    auto whole = [](const Tensor& t) { return alias(t, {}, {}, 0); };
    return {whole(one.values), whole(one.indices)};
  }
  // The dim goes to the end and back.
  Shape order, back;
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (d != dim) order.push_back(d);
    back.push_back(d < dim ? d : d == dim ? input.dim() - 1 : d - 1);
  }
  order.push_back(dim);
  auto arranged = [](const Tensor& tensor, const Shape& dims) {
    return to_contiguous(alias(tensor, permute_window(window_of(tensor), dims)));
  };
  Sorted sorted = sort_last(arranged(input, order), keep, descending, key_bits(input.dtype()));
  return {arranged(sorted.values, back), arranged(sorted.indices, back)};
}

Sorted sort_offsets(const Tensor& offsets, int64_t most) {
  return sort_last(offsets, offsets.numel(), false,
                   {0, std::max(1, int(std::bit_width(uint64_t(most))))});
}

void search_rows_cuda(const Tensor& places, const Tensor& sorted, const Tensor& values,
                      bool right) {
  cuda::DeviceGuard guard(values.device().index);
  int64_t length = sorted.size(-1), width = sorted.dim() == 1 ? 0 : values.size(-1);
  cuda::kernels_of<SortKernels>(values.dtype())
      .search.launch({cuda::blocks_for(values.numel(), kSortThreads)}, {kSortThreads}, 0,
                     sorted.address(), values.address(), places.address(), values.numel(), length,
                     width, right);
}

}  // namespace rushlight
