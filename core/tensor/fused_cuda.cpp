// Defines how a chain becomes the text of a kernel, and what the kernel gets. See fused_cuda.h.
#include "core/tensor/fused_cuda.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <sstream>

#include "core/base/error.h"
#include "core/device/cuda_kernel_map.h"
#include "core/tensor/cuda_types.h"
#include "core/tensor/dims.h"

namespace rushlight {
namespace {

constexpr int kThreads = 256;  // of a block

std::string joined(const auto&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

bool is_aligned(const Tensor& tensor, int vector) {
  return reinterpret_cast<uintptr_t>(tensor.address()) % (size_t(vector) * tensor.itemsize()) == 0;
}

}  // namespace

int CudaProgram::Source::vector() const {
  size_t largest = 1;
  for (const Read& read : reads) largest = std::max(largest, dtype_size(read.dtype));
  for (int step : stored) largest = std::max(largest, dtype_size(steps[size_t(step)].result));
  return int(kVectorBytes / largest);
}

// Each formula once, then the kernel. It calls what it reads r0, r1 and so on, what the steps give
// v0, v1, and what it writes w0, w1.
std::string CudaProgram::Source::text() const {
  std::string formulas, reading, computing, writing;
  std::set<const Formula*> defined;
  for (const Step& step : steps)
    if (const Formula* formula = step.formula; formula && defined.insert(formula).second)
      formulas += joined("FORMULA(", formula->name, ", ", formula->params, ", ",
                         formula->expression, ")\n");

  int places = 0;
  for (size_t k = 0; k < reads.size(); ++k) {
    const char* type = device_type(reads[k].dtype);
    reading += joined("  auto r", k, " = ");
    switch (reads[k].order) {
      case Order::same: reading += joined("read<", type, ", n>(args, ", k, ", first);\n"); break;
      case Order::single: reading += joined("read_single<", type, ">(args, ", k, ");\n"); break;
      case Order::other:
        reading += joined("read_places<", type, ", n>(args, ", k, ", first, places.of[", places++,
                          "]);\n");
    }
  }
  if (places) reading = joined("  Places<", places, ", n> places(args, layout, first);\n", reading);

  for (size_t s = 0; s < steps.size(); ++s)
    computing +=
        joined("    ", device_type(steps[s].result), " v", s, " = ", value_of(steps[s]), ";\n");
  for (size_t k = 0; k < stored.size(); ++k) {
    int step = stored[k];
    reading += joined("  Pack<", device_type(steps[size_t(step)].result), ", n> w", k, ";\n");
    computing += joined("    w", k, ".at[e] = v", step, ";\n");
    writing += joined("  write(args, ", k, ", first, w", k, ");\n");
  }

  const char* layout = places ? ", const __grid_constant__ FusedLayout layout" : "";
  return joined("#include \"core/tensor/fused.cuh\"\n\nnamespace rushlight::on_cuda {\n\n",
                formulas,
                "\nextern \"C\" __global__ void run(const __grid_constant__ FusedArgs args", layout,
                ") {\n  constexpr int n = ", vector(),
                ";\n  int64_t first = first_of_thread<n>();\n  if (first >= args.numel) return;\n",
                reading, "#pragma unroll\n  for (int e = 0; e < n; ++e) {\n", computing, "  }\n",
                writing, "}\n\n}  // namespace rushlight::on_cuda\n");
}

std::string CudaProgram::Source::value_of(const Step& step) const {
  std::string arguments;
  for (const Input& input : step.inputs) {
    const char* type = device_type(input.dtype);
    arguments += arguments.empty() ? "" : ", ";
    switch (input.kind) {
      case Input::step: arguments += joined("convert<", type, ">(v", input.index, ")"); break;
      case Input::read: {
        bool is_single = reads[size_t(input.index)].order == Order::single;
        arguments += joined("convert<", type, ">(r", input.index, is_single ? ")" : ".at[e])");
        break;
      }
      case Input::number: arguments += joined("number<", type, ">(args, ", input.index, ")");
    }
  }
  const char *compute = device_type(step.compute), *result = device_type(step.result);
  if (!step.formula) return joined("convert<", result, ">(", arguments, ")");
  for (int j = 0; j < step.formula->counts.scalars; ++j)
    arguments += joined(", number<", compute, ">(args, ", step.first_scalar + j, ")");
  return joined("stored<", result, ">(", step.formula->name, "::apply<", compute, ", ", compute,
                ", bool>(", arguments, "))");
}

std::string CudaProgram::Source::name() const {
  static std::atomic<int> count{0};
  std::string name = joined("fused ", ++count, ":");
  for (const Step& step : steps) name += joined(" ", step.formula ? step.formula->name : "cast");
  return name;
}

struct CudaProgram::Kernels {
  std::string text;
  cuda::CudaModule module;
  cuda::CudaKernel run{module, "run"};

  explicit Kernels(const Source& source)
      : text(source.text()), module(source.name(), text.c_str()) {}
};

CudaProgram::Input CudaProgram::number(const TileOperand& operand) {
  cast_loop(operand.tensor->dtype(), operand.kernel_dtype)(operand.tensor->data(), slot(), 1);
  return {Input::number, numbers_ - 1, operand.kernel_dtype};
}

void CudaProgram::add(const Formula* formula, DType compute, DType result,
                      std::span<const Input> inputs, const void* scalars) {
  source_.steps.push_back({formula, compute, result, numbers_, {inputs.begin(), inputs.end()}});
  size_t item = dtype_size(compute);
  for (int j = 0; formula && j < formula->counts.scalars; ++j)
    std::memcpy(slot(), static_cast<const char*>(scalars) + size_t(j) * item, item);
}

void* CudaProgram::slot() {
  ASSERT(numbers_ < kMaxFusedNumbers);
  return args_.numbers[numbers_++];
}

void CudaProgram::run(std::span<const TileOperand> reads, std::span<const Tensor> results) {
  ASSERT(reads.size() <= kMaxFusedReads && results.size() <= kMaxFusedWrites);
  const Tensor& result = results.front();
  args_.numel = result.numel();
  if (args_.numel == 0) return;
  for (const TileOperand& read : reads)
    source_.reads.push_back({read.tensor->dtype(), Order::same});
  int vector = source_.vector();
  std::vector<Shape> strides;
  for (size_t k = 0; k < reads.size(); ++k) {
    const Tensor& tensor = *reads[k].tensor;
    args_.reads[k] = tensor.address();
    Order& order = source_.reads[k].order;
    if (tensor.numel() == 1 && args_.numel != 1) order = Order::single;
    else if (!same_order(tensor, result) || !is_aligned(tensor, vector)) order = Order::other;
    if (order == Order::other) strides.push_back(broadcast_strides(tensor, result.sizes()));
  }
  for (size_t k = 0; k < results.size(); ++k) args_.writes[k] = results[k].address();

  cuda::CudaKernel& kernel = cuda::kernels_of<Kernels>(source_).run;
  cuda::Dim3 blocks{cuda::blocks_for(args_.numel, kThreads * vector)};
  if (strides.empty()) return kernel.launch(blocks, {kThreads}, 0, args_);
  strides.push_back(result.strides());
  kernel.launch(blocks, {kThreads}, 0, args_,
                kernel_layout<kMaxFusedReads + 1>(result.sizes(), strides));
}

}  // namespace rushlight
