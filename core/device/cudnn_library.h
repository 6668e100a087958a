// Owns what is called in cuDNN 9 (the packages nvidia-cudnn-cu12 and nvidia-cudnn-cu13): functions
// and types of its graph API, by cudnn_graph.h, and the search for the library.
//
// Why the graph API: every function of the older one (cudnnConvolutionForward...) is marked
// deprecated in the headers of version 9, new kernels appear here alone, and its engines say of
// themselves whether they use tensor cores, round their inputs or give other bits at each run.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "core/base/error.h"
#include "core/device/cuda_driver.h"
#include "core/device/dynamic_library.h"

namespace rushlight::cudnn {

// cudnnStatus_t: thousands are categories.
using Status = int;
inline constexpr Status kSuccess = 0;
constexpr bool is_not_supported(Status status) { return status / 1000 == 3; }

using Handle = struct cudnnContext*;

enum DataType : int { kFloat32 = 0, kFloat16 = 2, kBfloat16 = 9 };
enum ConvolutionMode : int { kCrossCorrelation = 1 };
enum HeuristicMode : int { kFallback = 2, kModeA = 3 };
enum NumericalNote : int {
  kTensorCore = 0,
  kDownConvertInputs = 1,
  kReducedPrecisionReduction = 2,
  kNondeterministic = 4,
  kWinogradTile6x6 = 7,
  kWinogradTile13x13 = 8,
};

// cudnnBackendDescriptorType_t
enum DescriptorType : int {
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kEngineHeuristics = 4,
  kExecutionPlan = 5,
  kForward = 10,
  kBackwardFilter = 11,
  kBackwardData = 12,
  kOperationGraph = 15,
  kVariantPack = 16,
  kTensor = 17,
};

// cudnnBackendAttributeName_t. The attributes of the three operations have the same order.
enum Attribute : int {
  kConvolutionComputeType = 100,
  kConvolutionMode = 101,
  kConvolutionDilations = 102,
  kConvolutionStrides = 103,
  kConvolutionPostPaddings = 104,
  kConvolutionPrePaddings = 105,
  kConvolutionSpatialDims = 106,
  kHeuristicsMode = 200,
  kHeuristicsGraph = 201,
  kHeuristicsResults = 202,
  kEngineConfigEngine = 300,
  kPlanHandle = 400,  // deprecated for a descriptor of a device, which 9.8 brought
  kPlanEngineConfig = 401,
  kPlanWorkspaceSize = 402,
  kForwardFirst = 700,
  kBackwardDataFirst = 706,
  kBackwardFilterFirst = 712,
  kGraphHandle = 800,  // like that of plans
  kGraphOperations = 801,
  kTensorByteAlignment = 900,
  kTensorDataType = 901,
  kTensorDimensions = 902,
  kTensorStrides = 903,
  kTensorUniqueId = 906,
  kPackUniqueIds = 1000,
  kPackDataPointers = 1001,
  kPackWorkspace = 1003,
  kEngineNumericalNote = 1303,
};
// Of an operation, after its first one.
enum OperationAttribute : int { kAlpha, kBeta, kConvolutionOf, kWeightOf, kInputOf, kOutputOf };

using RawDescriptor = void*;  // cudnnBackendDescriptor_t

// cudnnBackendAttributeType_t of a C++ type.
template <class T>
inline constexpr int kTypeOf = -1;
template <>
inline constexpr int kTypeOf<Handle> = 0;
template <>
inline constexpr int kTypeOf<DataType> = 1;
template <>
inline constexpr int kTypeOf<int64_t> = 3;
template <>
inline constexpr int kTypeOf<float> = 4;
template <>
inline constexpr int kTypeOf<const void*> = 6;  // an address on the device
template <>
inline constexpr int kTypeOf<ConvolutionMode> = 7;
template <>
inline constexpr int kTypeOf<HeuristicMode> = 8;
template <>
inline constexpr int kTypeOf<NumericalNote> = 11;
template <>
inline constexpr int kTypeOf<RawDescriptor> = 15;

// _(name, type)
#define CUDNN_FUNCTIONS(_)                                                                        \
  _(cudnnGetVersion, size_t())                                                                    \
  _(cudnnGetCudartVersion, size_t())                                                              \
  _(cudnnGetErrorString, const char*(Status status))                                              \
  _(cudnnGetLastErrorString, void(char* text, size_t bytes))                                      \
  _(cudnnCreate, Status(Handle* handle))                                                          \
  _(cudnnSetStream, Status(Handle handle, cuda::CUstream stream))                                 \
  _(cudnnBackendCreateDescriptor, Status(DescriptorType type, RawDescriptor* descriptor))         \
  _(cudnnBackendDestroyDescriptor, Status(RawDescriptor descriptor))                              \
  _(cudnnBackendSetAttribute, Status(RawDescriptor descriptor, Attribute name, int type,          \
                                     int64_t count, const void* elements))                        \
  _(cudnnBackendFinalize, Status(RawDescriptor descriptor))                                       \
  _(cudnnBackendGetAttribute, Status(RawDescriptor descriptor, Attribute name, int type,          \
                                     int64_t wanted, int64_t* count, void* elements))             \
  _(cudnnBackendExecute, Status(Handle handle, RawDescriptor plan, RawDescriptor variant_pack))

struct Functions {
  DynamicLibrary library;
  CUDNN_FUNCTIONS(LIBRARY_FUNCTION)
};

// Opened at first use. Null when the library was not found, does not fit or is not wanted; a file
// that RUSHLIGHT_CUDNN names must open.
const Functions* functions();

// The message of an error: cuDNN's own text, and the function that said so.
std::string error_text(Status status, const char* what);
inline void check(Status status, const char* what) {
  CHECK(status == kSuccess, error_text(status, what));
}

// Thrown where cuDNN says that it has nothing for a case.
struct NotSupported {};

// A descriptor of the graph API. Attributes are set, then it is finalized, then they are read.
class Descriptor {
 public:
  explicit Descriptor(DescriptorType type) {
    check(functions()->cudnnBackendCreateDescriptor(type, &raw_), "cudnnBackendCreateDescriptor");
  }
  ~Descriptor() {
    if (raw_) functions()->cudnnBackendDestroyDescriptor(raw_);
  }
  Descriptor(Descriptor&& other) noexcept : raw_(std::exchange(other.raw_, nullptr)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  template <class T>
  void set(Attribute name, std::span<const T> values) {
    static_assert(kTypeOf<T> >= 0);
    check(functions()->cudnnBackendSetAttribute(raw_, name, kTypeOf<T>, int64_t(values.size()),
                                                values.data()),
          "cudnnBackendSetAttribute");
  }
  template <class T>
  void set(Attribute name, const T& value) {
    set(name, std::span<const T>(&value, 1));
  }
  void set(Attribute name, const Descriptor& other) { set(name, other.raw_); }

  Status try_to_finalize() { return functions()->cudnnBackendFinalize(raw_); }
  void finalize() {
    Status status = try_to_finalize();
    if (is_not_supported(status)) throw NotSupported();
    check(status, "cudnnBackendFinalize");
  }

  // Reads what fits, and returns how much there is.
  template <class T>
  int64_t get(Attribute name, std::span<T> values) const {
    int64_t count = 0;
    check(functions()->cudnnBackendGetAttribute(raw_, name, kTypeOf<T>, int64_t(values.size()),
                                                &count, values.data()),
          "cudnnBackendGetAttribute");
    return count;
  }

  RawDescriptor raw() const { return raw_; }

 private:
  RawDescriptor raw_ = nullptr;
};

}  // namespace rushlight::cudnn
