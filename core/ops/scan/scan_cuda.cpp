// Defines scans on CUDA: how lines are shared out to threads, and cut into pieces where they are
// few and long. What each piece gives by itself is computed first, then what comes before each.
#include <bit>
#include <optional>

#include "core/base/ceil_div.h"
#include "core/device/cuda_kernel_map.h"
#include "core/device/cuda_memory.h"
#include "core/ops/scan/scan.h"
#include "core/ops/scan/scan_args.h"
#include "core/tensor/cuda_types.h"
#include "core/tensor/dims.h"
#include "core/tensor/pointwise.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

extern const char* const scan_cu;

namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kLongLine = 512;             // elements that are worth a whole block
constexpr int64_t kFullDevice = 1 << 18;       // threads that keep a large GPU busy
constexpr int64_t kLeastPiece = 64;            // elements of a thread that are worth a piece
constexpr int64_t kMaxPieces = (1 << 16) - 1;  // a grid's limit

enum class Walk : uint8_t { short_rows, long_rows, columns, carries };

// What a kernel is compiled for.
struct Variant {
  Scan scan;
  Walk walk;
  DType compute, memory, result;

  friend auto operator<=>(const Variant&, const Variant&) = default;

  // Sums, products and recurrences are kept in double, as on the CPU: chains are long.
  std::string scanner() const {
    std::string type = device_type(compute), wide = type;
    if (compute == DType::float32) wide = device_type(DType::float64);
    if (compute == DType::complex64) wide = device_type(DType::complex128);
    if (compute == DType::int64) wide = device_type(DType::uint64);  // because integers wrap around
    switch (scan) {
      case Scan::sum: return "Running<Add, " + wide + ">";
      case Scan::product: return "Running<Multiply, " + wide + ">";
      case Scan::log_sum_exp: return "Running<AddExponentials, " + type + ">";
      case Scan::linear: return "Linear<" + wide + ">";
      case Scan::maximum: return "Extreme<Maximum, " + type + ">";
      case Scan::minimum: return "Extreme<Minimum, " + type + ">";
    }
    return {};
  }
  std::string walk_name() const {
    constexpr const char* kNames[] = {"WALK_ROWS", "WALK_ROWS", "WALK_COLUMNS", "WALK_CARRIES"};
    return kNames[int(walk)];
  }
  int64_t line_threads() const { return walk == Walk::long_rows ? kScanThreads : kWarp; }
  std::string name() const {
    return "scan " + scanner() + " " + walk_name() + " " + std::to_string(line_threads()) + " " +
           dtype_name(memory) + " " + dtype_name(result);
  }
  std::string prelude() const {
    bool is_extreme = scan == Scan::maximum || scan == Scan::minimum;
    return cuda::define("SCANNER", scanner()) + cuda::define("COMPUTE", device_type(compute)) +
           cuda::define("MEMORY", device_type(memory)) +
           cuda::define("RESULT", device_type(result)) +
           (is_extreme ? cuda::define("EXTREME") : "") +
           cuda::define("LINE_THREADS", std::to_string(line_threads())) + cuda::define(walk_name());
  }
};

struct Kernels {
  cuda::CudaModule module;
  cuda::CudaKernel run{module, "run"};

  explicit Kernels(const Variant& variant) : module(variant.name(), scan_cu, variant.prelude()) {}
};

cuda::CudaKernel& kernel_of(const Variant& variant) {
  return cuda::kernels_of<Kernels>(variant).run;
}

cuda::CudaKernelFamily family([] {
  constexpr DType f32 = DType::float32;
  for (Walk walk : {Walk::short_rows, Walk::long_rows, Walk::columns, Walk::carries})
    kernel_of({Scan::sum, walk, f32, f32, f32});
  for (Scan scan : {Scan::product, Scan::log_sum_exp, Scan::linear, Scan::maximum, Scan::minimum})
    for (Walk walk : {Walk::long_rows, Walk::columns}) kernel_of({scan, walk, f32, f32, f32});
  kernel_of({Scan::sum, Walk::long_rows, DType::int64, DType::int64, DType::int64});
  kernel_of({Scan::sum, Walk::long_rows, f32, DType::float16, DType::float16});
});

// Whether vectors of items are aligned; a tensor that is not there does not matter.
bool is_aligned(const Tensor& tensor) {
  return !tensor.defined() ||
         reinterpret_cast<uintptr_t>(tensor.address()) % (kScanItems * tensor.itemsize()) == 0;
}

}  // namespace

void scan_cuda(Scan scan, const Tensor& input, const Tensor& factor, int64_t dim, bool reverse,
               const Tensor& result, const Tensor& positions) {
  if (result.numel() == 0) return;
  cuda::DeviceGuard guard(result.device().index);
  Tensor from = to_contiguous(input), by = factor.defined() ? to_contiguous(factor) : factor;
  AroundDim shape(input.sizes(), dim);
  ScanArgs args;
  args.input = from.address();
  args.factor = by.defined() ? by.address() : nullptr;
  args.result = result.address();
  args.positions = positions.defined() ? positions.address() : nullptr;
  args.carries = nullptr;
  args.lines = shape.outer * shape.inner;
  args.length = shape.length;
  args.inner = shape.inner;
  args.reverse = reverse;
  args.only_totals = false;

  Variant variant{scan, Walk::columns, dtype_of_compute(compute_of(result.dtype())), from.dtype(),
                  result.dtype()};
  if (shape.inner == 1)
    variant.walk = shape.length > kLongLine ? Walk::long_rows : Walk::short_rows;
  bool by_rows = variant.walk != Walk::columns;
  args.vectors = by_rows && shape.length % kScanItems == 0 && is_aligned(from) && is_aligned(by) &&
                 is_aligned(result);
  int64_t threads = by_rows ? variant.line_threads() : 1;
  int64_t side_by_side = by_rows
                             ? kScanThreads / threads
                             : std::min<int64_t>(std::bit_ceil(uint64_t(args.lines)), kScanThreads);
  unsigned blocks = cuda::blocks_for(args.lines, side_by_side);
  int64_t tile = by_rows ? threads * kScanItems : 1;
  // As many pieces as fill the device, if each has some work.
  int64_t wanted = std::min(kFullDevice / (int64_t(blocks) * threads * side_by_side),
                            shape.length / (threads * kLeastPiece));
  args.piece = round_up(ceil_div(shape.length, std::clamp<int64_t>(wanted, 1, kMaxPieces)), tile);
  args.pieces = ceil_div(shape.length, args.piece);
  cuda::Dim3 grid{blocks, unsigned(args.pieces)};
  cuda::Dim3 block = by_rows ? cuda::Dim3{unsigned(threads), unsigned(side_by_side)}
                             : cuda::Dim3{unsigned(side_by_side)};
  cuda::CudaKernel& kernel = kernel_of(variant);
  if (args.pieces == 1) return kernel.launch(grid, block, 0, args);

  cuda::CudaBuffer carries(size_t(args.lines * args.pieces * kMaxScanState), result.device().index);
  args.carries = carries.data();
  args.only_totals = true;
  kernel.launch(grid, block, 0, args);
  args.only_totals = false;
  variant.walk = Walk::carries;
  constexpr int64_t kLines = kScanThreads / kWarp;
  kernel_of(variant).launch({cuda::blocks_for(args.lines, kLines)},
                            {unsigned(kWarp), unsigned(kLines)}, 0, args);
  kernel.launch(grid, block, 0, args);
}

}  // namespace rushlight
