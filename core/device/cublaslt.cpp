#include "core/device/cublaslt.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

#include "core/base/alignment.h"
#include "core/base/error.h"
#include "core/base/recent_map.h"
#include "core/device/cuda.h"
#include "core/device/cuda_library.h"
#include "core/device/cuda_memory.h"

namespace rushlight::cublaslt {
namespace {

// ---- the library's types, by cublasLt.h, cublas_api.h and library_types.h ----------------------

using Status = int;  // cublasStatus_t
constexpr Status kSuccess = 0, kNotSupported = 15;
using Handle = struct cublasLtContext*;
using MatmulDesc = struct cublasLtMatmulDescOpaque*;
using MatrixLayout = struct cublasLtMatrixLayoutOpaque*;
using Preference = struct cublasLtMatmulPreferenceOpaque*;
struct Algorithm {  // cublasLtMatmulAlgo_t
  uint64_t data[8];
};
struct HeuristicResult {  // cublasLtMatmulHeuristicResult_t
  Algorithm algorithm;
  size_t workspace_size;
  Status state;
  float waves_count;
  int reserved[4];
};

// cudaDataType_t
constexpr int kReal32 = 0, kReal64 = 1, kReal16 = 2, kRealBfloat16 = 14;
// cublasComputeType_t
constexpr int kCompute32 = 68, kCompute64 = 70, kCompute32FastTf32 = 77;
// cublasOperation_t
constexpr int32_t kTranspose = 1;
// cublasLtMatmulDescAttributes_t and cublasLtEpilogue_t
constexpr int kDescTransA = 3, kDescTransB = 4, kDescEpilogue = 7, kDescBiasPointer = 8;
constexpr uint32_t kEpilogueBias = 4;
// cublasLtMatrixLayoutAttribute_t
constexpr int kLayoutBatchCount = 5, kLayoutBatchOffset = 6;
// cublasLtMatmulPreferenceAttributes_t and cublasLtReductionScheme_t
constexpr int kPreferMaxWorkspace = 1, kPreferReductionSchemes = 3, kPreferAlignmentA = 5,
              kPreferAlignmentB = 6, kPreferAlignmentC = 7, kPreferAlignmentD = 8;
constexpr uint32_t kReductionInComputeType = 2;

// _(name, type)
#define CUBLASLT_FUNCTIONS(_)                                                                  \
  _(cublasLtCreate, Status(Handle* handle))                                                    \
  _(cublasLtGetStatusString, const char*(Status status))                                       \
  _(cublasLtMatmulDescCreate, Status(MatmulDesc* desc, int compute_type, int scale_type))      \
  _(cublasLtMatmulDescDestroy, Status(MatmulDesc desc))                                        \
  _(cublasLtMatmulDescSetAttribute,                                                            \
    Status(MatmulDesc desc, int attribute, const void* value, size_t bytes))                   \
  _(cublasLtMatrixLayoutCreate,                                                                \
    Status(MatrixLayout* layout, int type, uint64_t rows, uint64_t columns, int64_t stride))   \
  _(cublasLtMatrixLayoutDestroy, Status(MatrixLayout layout))                                  \
  _(cublasLtMatrixLayoutSetAttribute,                                                          \
    Status(MatrixLayout layout, int attribute, const void* value, size_t bytes))               \
  _(cublasLtMatmulPreferenceCreate, Status(Preference* preference))                            \
  _(cublasLtMatmulPreferenceDestroy, Status(Preference preference))                            \
  _(cublasLtMatmulPreferenceSetAttribute,                                                      \
    Status(Preference preference, int attribute, const void* value, size_t bytes))             \
  _(cublasLtMatmulAlgoGetHeuristic,                                                            \
    Status(Handle handle, MatmulDesc desc, MatrixLayout a, MatrixLayout b, MatrixLayout c,     \
           MatrixLayout d, Preference preference, int wanted, HeuristicResult* results,        \
           int* found))                                                                        \
  _(cublasLtMatmul,                                                                            \
    Status(Handle handle, MatmulDesc desc, const void* alpha, const void* a,                   \
           MatrixLayout a_layout, const void* b, MatrixLayout b_layout, const void* beta,      \
           const void* c, MatrixLayout c_layout, void* d, MatrixLayout d_layout,               \
           const Algorithm* algorithm, void* workspace, size_t workspace_bytes,                \
           cuda::CUstream stream))

struct Functions {
  DynamicLibrary library;
  CUBLASLT_FUNCTIONS(LIBRARY_FUNCTION)
};

constexpr cuda::LibraryNames kNames = {"cuBLASLt",          "RUSHLIGHT_CUBLASLT",
                                       "libcublasLt.so.13", "libcublasLt.so.12",
                                       "nvidia/cublas/lib", "nvidia-cublas-cu12"};

// Null when the library was not found or is not wanted.
const Functions* functions() {
  static const auto table = cuda::open_optional(kNames.variable, [] {
    return Functions{DynamicLibrary(cuda::library_spec(kNames, cuda::driver_major_version()))};
  });
  return table ? &*table : nullptr;
}

void check(Status status, const char* what) {
  CHECK(status == kSuccess, "CUDA error: ", functions()->cublasLtGetStatusString(status), " (from ",
        what, ").");
}

// ---- plans -------------------------------------------------------------------------------------

constexpr uint64_t kMostWorkspace = uint64_t(32) << 20;  // what the fastest code for H100 wants
constexpr size_t kMostPlans = 1024;

std::atomic<bool> tf32_is_allowed{false};

// Everything that the choice of code depends on.
struct Key {
  Gemm gemm;
  int device;
  bool allows_tf32, has_bias;
  std::array<uint32_t, 4> alignments;  // of a, b, the bias and c, in bytes

  NumbersKey numbers() const {
    NumbersKey all{int64_t(gemm.dtype), gemm.batch, gemm.m, gemm.n, gemm.k, device,
                   allows_tf32,         has_bias};
    for (const Operand& each : {gemm.a, gemm.b}) {
      for (int64_t number : {int64_t(each.transposed), each.stride, each.step})
        all.push_back(number);
    }
    for (uint32_t alignment : alignments) all.push_back(alignment);
    return all;
  }
};

struct Types {
  int data, compute, scale;
};

std::optional<Types> types_of(DType dtype, bool allows_tf32) {
  switch (dtype) {
    case DType::float32:
      return Types{kReal32, allows_tf32 ? kCompute32FastTf32 : kCompute32, kReal32};
    case DType::float64: return Types{kReal64, kCompute64, kReal64};
    case DType::float16: return Types{kReal16, kCompute32, kReal32};
    case DType::bfloat16: return Types{kRealBfloat16, kCompute32, kReal32};
    default: return std::nullopt;
  }
}

// A descriptor that destroys itself.
template <class T>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, Status (*)(T)>;

// The library's matrices are column-major: it multiplies b.T by a.T, whose memory is that of b and
// a, and gives c.T. `operand` is null for the result.
Owned<MatrixLayout> make_layout(int type, int64_t rows, int64_t columns, const Operand* operand,
                                int64_t batch) {
  const Functions& lt = *functions();
  if (operand && operand->transposed) std::swap(rows, columns);
  int64_t stride = operand ? operand->stride : columns;
  int64_t step = operand ? operand->step : rows * columns;
  MatrixLayout layout = nullptr;
  check(lt.cublasLtMatrixLayoutCreate(&layout, type, uint64_t(columns), uint64_t(rows), stride),
        "cublasLtMatrixLayoutCreate");
  Owned<MatrixLayout> owned(layout, lt.cublasLtMatrixLayoutDestroy);
  auto set = [&](int attribute, const auto& value) {
    check(lt.cublasLtMatrixLayoutSetAttribute(layout, attribute, &value, sizeof value),
          "cublasLtMatrixLayoutSetAttribute");
  };
  if (batch > 1) {
    set(kLayoutBatchCount, int32_t(batch));
    set(kLayoutBatchOffset, step);
  }
  return owned;
}

class Plan {
 public:
  Plan(Handle handle, const Key& key, const void* bias)
      : types_(*types_of(key.gemm.dtype, key.allows_tf32)),
        desc_(make_desc(key, bias)),
        a_(make_layout(types_.data, key.gemm.m, key.gemm.k, &key.gemm.a, key.gemm.batch)),
        b_(make_layout(types_.data, key.gemm.k, key.gemm.n, &key.gemm.b, key.gemm.batch)),
        c_(make_layout(types_.data, key.gemm.m, key.gemm.n, nullptr, key.gemm.batch)) {
    const Functions& lt = *functions();
    Preference preference = nullptr;
    check(lt.cublasLtMatmulPreferenceCreate(&preference), "cublasLtMatmulPreferenceCreate");
    Owned<Preference> owned(preference, lt.cublasLtMatmulPreferenceDestroy);
    auto set = [&](int attribute, const auto& value) {
      check(lt.cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
            "cublasLtMatmulPreferenceSetAttribute");
    };
    set(kPreferMaxWorkspace, kMostWorkspace);
    set(kPreferReductionSchemes, kReductionInComputeType);
    set(kPreferAlignmentA, key.alignments[1]);
    set(kPreferAlignmentB, key.alignments[0]);
    set(kPreferAlignmentC, key.alignments[3]);
    set(kPreferAlignmentD, key.alignments[3]);
    int found = 0;
    Status status =
        lt.cublasLtMatmulAlgoGetHeuristic(handle, desc_.get(), b_.get(), a_.get(), c_.get(),
                                          c_.get(), preference, 1, &choice_, &found);
    has_code_ = status == kSuccess && found > 0 && choice_.state == kSuccess;
    if (status != kNotSupported) check(status, "cublasLtMatmulAlgoGetHeuristic");
  }

  bool run(Handle handle, int device, double alpha, const void* a, const void* b, const void* bias,
           double beta, void* c) {
    if (!has_code_) return false;
    if (bias) set_desc(desc_.get(), kDescBiasPointer, bias);
    cuda::CudaBuffer workspace(choice_.workspace_size, device);
    float single[] = {float(alpha), float(beta)};
    double wide[] = {alpha, beta};
    auto factor = [&](int i) -> const void* {
      return types_.scale == kReal64 ? static_cast<void*>(&wide[i]) : &single[i];
    };
    check(functions()->cublasLtMatmul(handle, desc_.get(), factor(0), b, b_.get(), a, a_.get(),
                                      factor(1), c, c_.get(), c, c_.get(), &choice_.algorithm,
                                      workspace.data(), choice_.workspace_size,
                                      cuda::current_stream(device).handle),
          "cublasLtMatmul");
    return true;
  }

 private:
  template <class T>
  static void set_desc(MatmulDesc desc, int attribute, const T& value) {
    check(functions()->cublasLtMatmulDescSetAttribute(desc, attribute, &value, sizeof value),
          "cublasLtMatmulDescSetAttribute");
  }

  Owned<MatmulDesc> make_desc(const Key& key, const void* bias) const {
    const Functions& lt = *functions();
    MatmulDesc desc = nullptr;
    check(lt.cublasLtMatmulDescCreate(&desc, types_.compute, types_.scale),
          "cublasLtMatmulDescCreate");
    Owned<MatmulDesc> owned(desc, lt.cublasLtMatmulDescDestroy);
    if (key.gemm.b.transposed) set_desc(desc, kDescTransA, kTranspose);
    if (key.gemm.a.transposed) set_desc(desc, kDescTransB, kTranspose);
    if (bias) {
      set_desc(desc, kDescEpilogue, kEpilogueBias);
      set_desc(desc, kDescBiasPointer, bias);  // its alignment counts in the choice
    }
    return owned;
  }

  Types types_;
  Owned<MatmulDesc> desc_;
  Owned<MatrixLayout> a_, b_, c_;
  HeuristicResult choice_{};
  bool has_code_ = false;
};

// Plans and handles live as long as the process: at exit the driver may be gone before them.
struct Plans {
  std::mutex mutex;
  std::array<Handle, cuda::kMaxDevices> handles{};
  RecentMap<std::optional<Plan>> made{kMostPlans};
};
Plans& plans() {
  static auto* plans = new Plans;
  return *plans;
}

}  // namespace

bool gemm(const Gemm& gemm, double alpha, const void* a, const void* b, const void* bias,
          double beta, void* c) {
  if (!types_of(gemm.dtype, false) || !functions()) return false;
  int device = cuda::current_device();
  cuda::activate(device);
  auto aligned = [](const void* data) { return uint32_t(alignment_of(data, 256)); };
  Key key{gemm,
          device,
          gemm.dtype == DType::float32 && tf32_is_allowed,
          bias != nullptr,
          {aligned(a), aligned(b), bias ? aligned(bias) : 0, aligned(c)}};
  std::lock_guard lock(plans().mutex);
  Handle& handle = plans().handles[size_t(device)];
  if (!handle) check(functions()->cublasLtCreate(&handle), "cublasLtCreate");
  std::optional<Plan>& plan = plans().made[key.numbers()];
  if (!plan) plan.emplace(handle, key, bias);
  return plan->run(handle, device, alpha, a, b, bias, beta, c);
}

void allow_tf32(bool allow) { tf32_is_allowed = allow; }
bool allows_tf32() { return tf32_is_allowed; }

}  // namespace rushlight::cublaslt
