// Defines the reduce loop on CUDA: how results and elements are shared out to threads. A kernel is
// compiled for each reduction, its dtypes and its walk, and kept for the life of the process.
//
// Large reductions to few results are cut into pieces, whose number depends on the sizes only; a
// second kernel merges what they gave.
#include <bit>
#include <optional>

#include "core/base/ceil_div.h"
#include "core/device/cuda_kernel_map.h"
#include "core/device/cuda_memory.h"
#include "core/tensor/cuda_types.h"
#include "core/tensor/dims.h"
#include "core/tensor/lane_layout.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/reduce_args.h"
#include "core/tensor/reduce_split.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

extern const char* const reduce_cu;

namespace {

constexpr int64_t kMaxVector = 8;              // elements
constexpr int64_t kWarp = 32;                  // threads
constexpr int64_t kFullDevice = 1 << 18;       // threads that keep a large GPU busy
constexpr int64_t kLeastSteps = 16;            // vectors of a thread that are worth a piece
constexpr int64_t kMostSteps = 1024;           // that may be added in one chain
constexpr int64_t kMaxPieces = (1 << 16) - 1;  // a grid's limit

enum class Walk : uint8_t { rows, columns, partials };

// What a kernel is compiled for.
struct Variant {
  Reduction reduction;
  Walk walk;
  int64_t vector;
  DType compute, memory, result;

  friend auto operator<=>(const Variant&, const Variant&) = default;

  std::string reducer() const {
    std::string type = device_type(compute);
    bool adds = reduction == Reduction::sum || reduction == Reduction::nan_sum ||
                reduction == Reduction::product;
    if (adds && compute == DType::int64) type = "uint64_t";  // because integers wrap around
    auto fold = [&](const char* name) { return "Fold<" + std::string(name) + ", " + type + ">"; };
    switch (reduction) {
      case Reduction::sum: return fold("Sum");
      case Reduction::mean: return fold("Mean");
      case Reduction::nan_sum: return fold(is_floating(compute) ? "NanSum" : "Sum");
      case Reduction::product: return fold("Product");
      case Reduction::maximum: return fold("Maximum");
      case Reduction::minimum: return fold("Minimum");
      case Reduction::indexed_maximum: return "Indexed<Maximum, " + type + ">";
      case Reduction::indexed_minimum: return "Indexed<Minimum, " + type + ">";
      case Reduction::variance: return "Moments<" + type + ", false>";
      case Reduction::deviation: return "Moments<" + type + ", true>";
      case Reduction::norm_1: return fold("Norm1");
      case Reduction::norm_2: return fold("Norm2");
      case Reduction::norm_p: return fold("NormP");
      case Reduction::norm_max: return fold("NormMax");
      case Reduction::norm_min: return fold("NormMin");
      case Reduction::log_sum_exp: return "LogSumExp<" + type + ">";
      case Reduction::count: break;  // the sum of bools does it on CUDA
    }
    return {};
  }
  std::string walk_name() const {
    constexpr const char* kNames[] = {"WALK_ROWS", "WALK_COLUMNS", "WALK_PARTIALS"};
    return kNames[int(walk)];
  }
  std::string name() const {
    return "reduce " + reducer() + " " + walk_name() + " " + dtype_name(memory) + " " +
           dtype_name(result) + " " + std::to_string(vector);
  }
  std::string prelude() const {
    return cuda::define("REDUCER", reducer()) + cuda::define("COMPUTE", device_type(compute)) +
           cuda::define("MEMORY", device_type(memory)) +
           cuda::define("RESULT", device_type(result)) +
           cuda::define("VECTOR", std::to_string(vector)) + cuda::define(walk_name());
  }
};

struct Kernels {
  cuda::CudaModule module;
  cuda::CudaKernel run{module, "run"};

  explicit Kernels(const Variant& variant) : module(variant.name(), reduce_cu, variant.prelude()) {}
};

cuda::CudaKernel& kernel_of(const Variant& variant) {
  return cuda::kernels_of<Kernels>(variant).run;
}

int64_t widest_vector(DType memory) {
  return std::min(kVectorBytes / int64_t(dtype_size(memory)), kMaxVector);
}

cuda::CudaKernelFamily family([] {
  constexpr DType f32 = DType::float32;
  for (int r = 0; r < int(Reduction::count); ++r)
    kernel_of({Reduction(r), Walk::rows, 4, f32, f32, f32});
  for (Reduction r : {Reduction::sum, Reduction::mean, Reduction::variance})
    kernel_of({r, Walk::columns, 4, f32, f32, f32});
  for (DType dtype : {DType::float16, DType::bfloat16})
    for (Walk walk : {Walk::rows, Walk::columns})
      kernel_of({Reduction::sum, walk, kMaxVector, f32, dtype, dtype});
  kernel_of({Reduction::sum, Walk::partials, 1, f32, f32, f32});
  kernel_of({Reduction::sum, Walk::rows, 2, DType::int64, DType::int64, DType::int64});
  kernel_of({Reduction::sum, Walk::rows, 2, DType::complex64, DType::complex64, DType::complex64});
});

int64_t power_of_two_above(int64_t n) { return int64_t(std::bit_ceil(uint64_t(n))); }

ReduceDims dims_of(const ReduceSpace& space, int64_t item) {
  CHECK(space.sizes.size() <= kMaxReduceDims, ErrorKind::kNotImplemented,
        "a CUDA kernel walks at most ", kMaxReduceDims,
        " dims that cannot be joined, but this tensor has ", space.sizes.size(),
        ". Call contiguous() on it first.");
  ReduceDims dims;
  dims.dims = int32_t(space.sizes.size());
  dims.numel = space.numel;
  for (size_t d = 0; d < space.sizes.size(); ++d) {
    dims.sizes[d] = space.sizes[d];
    dims.strides[d] = space.strides[d] / item;
  }
  return dims;
}

// How many neighbors of memory a thread can load at once.
int64_t vector_of(const Tensor& input, const ReduceSplit& split) {
  int64_t item = int64_t(input.itemsize()), vector = widest_vector(input.dtype());
  int64_t bytes = vector * item;
  const ReduceSpace& inner = split.reduced_is_nearest ? split.reduced : split.outputs;
  const ReduceSpace& outer = split.reduced_is_nearest ? split.outputs : split.reduced;
  // A single run may have a tail, which is taken one by one.
  bool has_tail = split.reduced_is_nearest && inner.sizes.size() == 1;
  bool fits = !inner.sizes.empty() && inner.run_stride() == item &&
              (has_tail ? inner.run() >= vector : inner.run() % vector == 0) &&
              reinterpret_cast<uintptr_t>(input.address()) % size_t(bytes) == 0;
  for (size_t d = 0; d + 1 < inner.strides.size(); ++d) fits &= inner.strides[d] % bytes == 0;
  for (int64_t stride : outer.strides) fits &= stride % bytes == 0;
  return fits ? vector : 1;
}

// How the work is shared out: outputs to blocks, and reduced elements to pieces.
struct Grid {
  cuda::Dim3 block;
  unsigned blocks;
  int64_t piece, pieces;

  // As many pieces as fill the device, if each has some work; more where chains grow too long.
  void cut(int64_t reduced, int64_t step, int64_t vector) {
    int64_t wanted = kFullDevice / (int64_t(blocks) * kReduceThreads);
    int64_t count = std::max(std::min(wanted, reduced / (step * kLeastSteps)),
                             ceil_div(reduced, step * kMostSteps));
    count = std::clamp<int64_t>(count, 1, kMaxPieces);
    piece = round_up(ceil_div(reduced, count), vector);
    pieces = ceil_div(reduced, piece);
  }
};

Grid grid_of_rows(int64_t outputs, int64_t reduced, int64_t vector) {
  int64_t vectors = ceil_div(reduced, vector);
  int64_t across = std::min(power_of_two_above(vectors), kWarp);
  // More threads for a row where it is long, or where there are few.
  while (across < kReduceThreads && vectors >= 2 * across &&
         (vectors >= 8 * across || outputs * across < kFullDevice))
    across *= 2;
  int64_t rows = kReduceThreads / across;
  Grid grid{{unsigned(across), unsigned(rows)}, cuda::blocks_for(outputs, rows), 0, 0};
  grid.cut(reduced, across * vector, vector);
  return grid;
}

Grid grid_of_columns(int64_t outputs, int64_t reduced, int64_t vector) {
  int64_t wide = power_of_two_above(ceil_div(outputs, vector));
  int64_t across = std::min(wide, kWarp);
  int64_t down = std::min(kReduceThreads / across, power_of_two_above(reduced));
  across = std::min(wide, kReduceThreads / down);
  Grid grid{{unsigned(across), unsigned(down)}, cuda::blocks_for(outputs, across * vector), 0, 0};
  grid.cut(reduced, down, 1);
  return grid;
}

}  // namespace

void run_reduce_cuda(Reduction reduction, const Tensor& input, DimSet dims, DType compute,
                     double parameter, const Tensor& first, const Tensor& second) {
  ReduceSplit split = split_dims(input, dims);
  ReduceArgs args;
  args.input = input.address();
  args.first = first.address();
  args.second = second.defined() ? second.address() : nullptr;
  args.partials = nullptr;
  args.parameter = parameter;
  args.outputs = dims_of(split.outputs, int64_t(input.itemsize()));
  args.reduced = dims_of(split.reduced, int64_t(input.itemsize()));
  for (size_t d = 0; d < split.output_strides.size(); ++d)
    args.result_strides[d] = split.output_strides[d];

  int64_t outputs = split.outputs.numel, reduced = split.reduced.numel;
  Variant variant{reduction,
                  split.reduced_is_nearest ? Walk::rows : Walk::columns,
                  vector_of(input, split),
                  compute,
                  input.dtype(),
                  first.dtype()};
  Grid grid =
      (split.reduced_is_nearest ? grid_of_rows : grid_of_columns)(outputs, reduced, variant.vector);
  args.piece = grid.piece;
  args.pieces = grid.pieces;

  int device = input.device().index;
  cuda::DeviceGuard guard(device);
  std::optional<cuda::CudaBuffer> partials;
  if (grid.pieces > 1) {
    partials.emplace(size_t(grid.pieces * outputs * kMaxReduceState), device);
    args.partials = partials->data();
  }
  kernel_of(variant).launch({grid.blocks, unsigned(grid.pieces)}, grid.block, 0, args);
  if (grid.pieces == 1) return;
  args.input = args.partials;
  args.partials = nullptr;
  variant.walk = Walk::partials;
  variant.vector = 1;
  Grid merge = grid_of_columns(outputs, grid.pieces, 1);
  kernel_of(variant).launch({merge.blocks}, merge.block, 0, args);
}

}  // namespace rushlight
