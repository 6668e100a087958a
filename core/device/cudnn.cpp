#include "core/device/cudnn.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/base/alignment.h"
#include "core/base/recent_map.h"
#include "core/device/cuda.h"
#include "core/device/cuda_capture.h"
#include "core/device/cuda_memory.h"
#include "core/device/cudnn_library.h"

namespace rushlight::cudnn {
namespace {

constexpr double kFewProducts = 1 << 20;
// Engines that want more are passed over. A bound of ours, and not the memory that happens to be
// free, decides about an engine, because another engine would give other bits.
constexpr int64_t kMostWorkspace = int64_t(1) << 30;
constexpr size_t kMostPlans = 512;  // on a device; a net has three for each shape of a layer

std::atomic<Settings> settings;

std::optional<DataType> data_type(DType dtype) {
  switch (dtype) {
    case DType::float32: return kFloat32;
    case DType::float16: return kFloat16;
    case DType::bfloat16: return kBfloat16;
    default: return std::nullopt;
  }
}

// ---- what is convolved, in descriptors ---------------------------------------------------------

using Numbers = SmallVector<int64_t, 5>;

// One number for each spatial dim, of which cuDNN wants two at least.
Numbers spatial(const Convolution& conv, const std::array<int64_t, 3>& list, int64_t filler) {
  Numbers numbers(list.begin(), list.begin() + conv.dims);
  if (conv.dims == 1) numbers.insert(0, filler);
  return numbers;
}
Numbers sizes_of(const Convolution& conv, int64_t batch, int64_t channels,
                 const std::array<int64_t, 3>& list) {
  Numbers sizes = spatial(conv, list, 1);
  sizes.insert(0, channels);
  sizes.insert(0, batch);
  return sizes;
}

Numbers dense_strides(const Numbers& sizes, onednn::ImageLayout layout) {
  Numbers strides(sizes.size());
  int64_t step = 1;
  auto give = [&](size_t d) {
    strides[d] = step;
    step *= sizes[d];
  };
  bool last = layout == onednn::ImageLayout::channels_last;
  if (last) give(1);
  for (size_t d = sizes.size(); d-- > 2;) give(d);
  if (!last) give(1);
  give(0);
  return strides;
}

std::span<const int64_t> span_of(const Numbers& numbers) {
  return {numbers.begin(), numbers.end()};
}

// The tensors of a graph in the order of its addresses; they are known by these numbers.
constexpr std::array<int64_t, 3> kTensorIds = {1, 2, 3};
using Addresses = std::array<const void*, 3>;  // of input, weight and output

// A thread cannot read more than 16 bytes at once.
int64_t byte_alignment(const void* data) { return int64_t(alignment_of(data, 16)); }

Descriptor make_tensor(const Convolution& conv, size_t which, const Numbers& sizes,
                       const void* data) {
  Descriptor tensor(kTensor);
  tensor.set(kTensorUniqueId, kTensorIds[which]);
  tensor.set(kTensorDataType, *data_type(conv.dtype));
  tensor.set(kTensorDimensions, span_of(sizes));
  tensor.set(kTensorStrides, span_of(dense_strides(sizes, conv.layout)));
  tensor.set(kTensorByteAlignment, byte_alignment(data));
  tensor.finalize();
  return tensor;
}

Descriptor make_convolution(const Convolution& conv) {
  Descriptor windows(kConvolution);
  windows.set(kConvolutionComputeType, kFloat32);
  windows.set(kConvolutionMode, kCrossCorrelation);
  windows.set(kConvolutionSpatialDims, std::max<int64_t>(conv.dims, 2));
  windows.set(kConvolutionDilations, span_of(spatial(conv, conv.dilation, 1)));
  windows.set(kConvolutionStrides, span_of(spatial(conv, conv.stride, 1)));
  windows.set(kConvolutionPrePaddings, span_of(spatial(conv, conv.padding_before, 0)));
  windows.set(kConvolutionPostPaddings, span_of(spatial(conv, conv.padding_after, 0)));
  windows.finalize();
  return windows;
}

// Groups follow from the channels of input and weight.
Descriptor make_operation(Kind kind, const Convolution& conv, const Addresses& addresses) {
  struct Form {
    DescriptorType type;
    Attribute first;
  };
  constexpr Form kForms[] = {{kForward, kForwardFirst},
                             {kBackwardData, kBackwardDataFirst},
                             {kBackwardFilter, kBackwardFilterFirst}};
  Form form = kForms[int(kind)];
  std::array<int64_t, 3> out{};
  for (int d = 0; d < conv.dims; ++d) out[size_t(d)] = conv.out_size(d);
  Descriptor operation(form.type);
  auto set = [&](OperationAttribute which, const auto& value) {
    operation.set(Attribute(int(form.first) + which), value);
  };
  set(kAlpha, 1.0f);
  set(kBeta, 0.0f);
  set(kConvolutionOf, make_convolution(conv));
  set(kInputOf,
      make_tensor(conv, 0, sizes_of(conv, conv.batch, conv.in_channels, conv.size), addresses[0]));
  set(kWeightOf,
      make_tensor(conv, 1,
                  sizes_of(conv, conv.out_channels, conv.in_channels / conv.groups, conv.kernel),
                  addresses[1]));
  set(kOutputOf,
      make_tensor(conv, 2, sizes_of(conv, conv.batch, conv.out_channels, out), addresses[2]));
  operation.finalize();
  return operation;
}

// ---- engines and plans -------------------------------------------------------------------------

// Engines in the order of their expected speed.
std::vector<Descriptor> engine_configs(const Descriptor& graph, HeuristicMode mode) {
  std::vector<Descriptor> configs;
  Descriptor heuristics(kEngineHeuristics);
  heuristics.set(kHeuristicsGraph, graph);
  heuristics.set(kHeuristicsMode, mode);
  Status status = heuristics.try_to_finalize();
  if (is_not_supported(status)) return configs;
  check(status, "cudnnBackendFinalize");
  int64_t count = heuristics.get(kHeuristicsResults, std::span<RawDescriptor>());
  std::vector<RawDescriptor> raw;
  for (int64_t i = 0; i < count; ++i) raw.push_back(configs.emplace_back(kEngineConfig).raw());
  count = heuristics.get(kHeuristicsResults, std::span(raw));
  while (int64_t(configs.size()) > count) configs.pop_back();
  return configs;
}

// Whether an engine computes what we promise.
bool is_exact_enough(const Descriptor& config, bool allows_tensor_cores) {
  Descriptor engine(kEngine);
  RawDescriptor raw = engine.raw();
  config.get(kEngineConfigEngine, std::span(&raw, 1));
  std::array<NumericalNote, 32> notes{};
  size_t count = std::min(
      notes.size(), size_t(engine.get(kEngineNumericalNote, std::span<NumericalNote>(notes))));
  return std::none_of(notes.begin(), notes.begin() + count, [&](NumericalNote note) {
    switch (note) {
      case kTensorCore: return !allows_tensor_cores;
      case kDownConvertInputs:
      case kReducedPrecisionReduction:
      case kNondeterministic:
      case kWinogradTile6x6:  // larger tiles lose more digits than sums do
      case kWinogradTile13x13: return true;
      default: return false;
    }
  });
}

struct Plan {
  Descriptor config, plan;
  int64_t workspace = 0;
};
using PlanPtr = std::shared_ptr<const Plan>;

// What has been found for a key; no plan means that cuDNN has no code.
struct Slot {
  bool is_filled = false;
  PlanPtr plan;
};

// The handle of a device and its plans. They live as long as the process: at exit the driver may be
// gone before them. A handle serves one thread at a time and the stream that it was given last.
struct Session {
  std::mutex mutex;
  Handle handle = nullptr;
  RecentMap<Slot> plans{kMostPlans};
  // CUDA graphs launch the code of plans that ran in their captures; before cuDNN 9.28 a graph does
  // not keep it alive.
  std::vector<PlanPtr> captured;
};
Session& session_of(int device) {
  static auto* sessions = new std::array<Session, cuda::kMaxDevices>;
  return (*sessions)[size_t(device)];
}

Status execute(Handle handle, const Plan& plan, const Addresses& addresses) {
  cuda::CudaBuffer workspace(size_t(plan.workspace), cuda::current_device());
  Descriptor pack(kVariantPack);
  pack.set(kPackDataPointers, std::span<const void* const>(addresses));
  pack.set(kPackUniqueIds, std::span<const int64_t>(kTensorIds));
  pack.set(kPackWorkspace, static_cast<const void*>(workspace.data()));
  pack.finalize();
  return functions()->cudnnBackendExecute(handle, plan.plan.raw(), pack.raw());
}

// Finds plans for a case. It remembers the first true error, which is raised when nothing works.
class Search {
 public:
  Search(Handle handle, Kind kind, const Convolution& conv, const Addresses& addresses,
         bool allows_tf32)
      : handle_(handle),
        addresses_(addresses),
        allows_tensor_cores_(allows_tf32 || conv.dtype != DType::float32) {
    Descriptor operation = make_operation(kind, conv, addresses);
    graph_.set(kGraphHandle, handle);
    graph_.set(kGraphOperations, operation);
    graph_.finalize();
  }

  PlanPtr first() {
    visit([&](PlanPtr plan) {
      best_ = std::move(plan);
      return false;
    });
    return best_or_raise();
  }

  // The fastest of so many; 0 stands for all.
  PlanPtr fastest(int most) {
    float least = 0;
    int tried = 0;
    visit([&](PlanPtr plan) {
      std::optional<float> time = measure(*plan);
      if (time && (!best_ || *time < least)) {
        best_ = std::move(plan);
        least = *time;
      }
      return ++tried != most;
    });
    return best_or_raise();
  }

 private:
  // Calls f with plan after plan, for as long as it returns true.
  template <class F>
  void visit(F&& f) {
    for (HeuristicMode mode : {kModeA, kFallback})
      for (Descriptor& config : engine_configs(graph_, mode)) {
        if (!is_exact_enough(config, allows_tensor_cores_)) continue;
        PlanPtr plan = make_plan(std::move(config));
        if (plan && !f(std::move(plan))) return;
      }
  }

  PlanPtr make_plan(Descriptor config) {
    Plan made{std::move(config), Descriptor(kExecutionPlan)};
    made.plan.set(kPlanHandle, handle_);
    made.plan.set(kPlanEngineConfig, made.config);
    if (!succeeds(made.plan.try_to_finalize(), "cudnnBackendFinalize")) return nullptr;
    made.plan.get(kPlanWorkspaceSize, std::span(&made.workspace, 1));
    if (made.workspace > kMostWorkspace) return nullptr;
    return std::make_shared<const Plan>(std::move(made));
  }

  // Milliseconds of three runs, after one that may load code.
  std::optional<float> measure(const Plan& plan) {
    cuda::Stream stream = cuda::current_stream(cuda::current_device());
    cuda::Event begin(true), end(true);
    for (int run = 0; run < 4; ++run) {
      if (run == 1) begin.record(stream);
      if (!succeeds(execute(handle_, plan, addresses_), "cudnnBackendExecute")) return std::nullopt;
    }
    end.record(stream);
    cuda::observe_wait();
    end.synchronize();
    return begin.elapsed_time(end);
  }

  bool succeeds(Status status, const char* what) {
    if (status != kSuccess && !is_not_supported(status) && error_.empty())
      error_ = error_text(status, what);
    return status == kSuccess;
  }

  PlanPtr best_or_raise() {
    CHECK(best_ || error_.empty(), error_);
    return best_;
  }

  Handle handle_;
  const Addresses& addresses_;
  bool allows_tensor_cores_;
  Descriptor graph_{kOperationGraph};
  PlanPtr best_;
  std::string error_;
};

// Everything that the choice of a plan depends on.
NumbersKey key_of(Kind kind, const Convolution& conv, const Addresses& addresses,
                  const Settings& chosen) {
  NumbersKey key{int64_t(kind),        int64_t(conv.dtype),
                 int64_t(conv.layout), conv.batch,
                 conv.groups,          conv.in_channels,
                 conv.out_channels,    chosen.allows_tf32,
                 chosen.tries_engines, chosen.tries_engines ? chosen.most_engines : 0};
  for (const void* address : addresses) key.push_back(byte_alignment(address));
  for (const auto* list : {&conv.size, &conv.kernel, &conv.stride, &conv.dilation,
                           &conv.padding_before, &conv.padding_after})
    for (int d = 0; d < conv.dims; ++d) key.push_back((*list)[size_t(d)]);
  return key;
}

// What there is enough work in for tensor cores.
bool is_worth_them(const Convolution& conv) {
  int64_t in = conv.in_channels / conv.groups;
  double products = double(conv.batch) * double(conv.out_channels) * double(in);
  for (int d = 0; d < conv.dims; ++d)
    products *= double(conv.out_size(d)) * double(conv.kernel[size_t(d)]);
  bool is_depthwise = conv.groups > 1 && in == 1;
  return products >= kFewProducts && !is_depthwise;
}

}  // namespace

bool is_wanted(const Convolution& conv) {
  return settings.load().is_enabled && data_type(conv.dtype) && is_worth_them(conv) && functions();
}

bool rounds_factors(const Convolution& conv) {
  Settings chosen = settings;
  return conv.dtype == DType::float32 && chosen.is_enabled && chosen.allows_tf32 &&
         is_worth_them(conv);
}

bool convolve(Kind kind, const Convolution& conv, const void* input, const void* weight,
              const void* output) {
  int device = cuda::current_device();
  cuda::activate(device);
  cuda::Stream stream = cuda::current_stream(device);
  bool captures = cuda::is_capturing(stream);
  Settings chosen = settings;
  Addresses addresses{input, weight, output};

  Session& session = session_of(device);
  std::lock_guard lock(session.mutex);
  const Functions& f = *functions();
  if (!session.handle) check(f.cudnnCreate(&session.handle), "cudnnCreate");
  check(f.cudnnSetStream(session.handle, stream.handle), "cudnnSetStream");
  Slot* slot = &session.plans[key_of(kind, conv, addresses, chosen)];
  if (!slot->is_filled && captures) {  // nothing can be timed
    chosen.tries_engines = false;
    slot = &session.plans[key_of(kind, conv, addresses, chosen)];
  }
  if (!slot->is_filled) {
    cuda::RelaxedCapture relaxed;  // code is loaded
    try {
      Search search(session.handle, kind, conv, addresses, chosen.allows_tf32);
      slot->plan = chosen.tries_engines ? search.fastest(chosen.most_engines) : search.first();
    } catch (const NotSupported&) {
    }
    slot->is_filled = true;
  }
  if (!slot->plan) return false;
  check(execute(session.handle, *slot->plan, addresses), "cudnnBackendExecute");
  auto& kept = session.captured;
  if (captures && std::find(kept.begin(), kept.end(), slot->plan) == kept.end())
    kept.push_back(slot->plan);
  return true;
}

void set(const Settings& wanted) { settings = wanted; }

int64_t version() { return functions() ? int64_t(functions()->cudnnGetVersion()) : 0; }

}  // namespace rushlight::cudnn
