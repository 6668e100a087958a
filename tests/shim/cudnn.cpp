// Owns the pretended cuDNN: the descriptors of its graph API, whose attributes are checked as the
// real library's documentation has them, and engines with the traits that a caller chooses among.
//
// RUSHLIGHT_SHIM_CUDNN_VERSION and RUSHLIGHT_SHIM_CUDNN_CUDA change what it says of itself;
// RUSHLIGHT_SHIM_CUDNN_FAILS makes plans or runs fail ("plan", "execute").
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string_view>
#include <thread>

#include "tests/shim/convolve.h"
#include "tests/shim/graph.h"
#include "tests/shim/solver.h"

namespace shim {
namespace {

// cudnnStatus_t
constexpr int kDone = 0, kNoHandle = 1001, kBadParameter = 2000, kUnsupported = 3000,
              kInternalError = 4000, kExecutionFailed = 5000;

struct Failure {
  int status;
  std::string rule;
};
void demand(bool condition, const char* rule, int status = kBadParameter) {
  if (!condition) throw Failure{status, rule};
}

// ---- engines, in the order in which the heuristics name them -----------------------------------

// cudnnBackendNumericalNote_t
constexpr int kTensorCore = 0, kDownConverts = 1, kReducesPrecision = 2, kNondeterministic = 4,
              kLargeWinograd = 7;

struct Engine {
  std::vector<int> notes;
  bool is_forbidden;  // Rushlight promises never to take it
  bool has_code;      // a plan can be made
  int milliseconds;   // that a run takes at least
  int64_t workspace;  // no round number, so that too little is found
};
const std::vector<Engine> kEngines = {
    {{kTensorCore, kNondeterministic}, true, true, 0, 8},
    {{kTensorCore, kReducesPrecision}, true, true, 0, 8},
    {{kDownConverts, kTensorCore}, true, true, 0, 8},
    {{5, kLargeWinograd}, true, true, 0, 8},
    {{kTensorCore}, false, true, 0, int64_t(1) << 40},  // wants more room than there is
    {{kTensorCore}, false, false, 0, 0},
    {{kTensorCore}, false, true, 20, 1037},  // 6
    {{kTensorCore}, false, true, 0, 0},      // 7
    {{}, false, true, 0, 523},               // 8
};
std::vector<int> runs(kEngines.size());

// ---- descriptors -------------------------------------------------------------------------------

// cudnnBackendDescriptorType_t
enum Kind : int {
  kConvolution = 1,
  kEngine = 2,
  kConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kForward = 10,
  kBackwardFilter = 11,
  kBackwardData = 12,
  kGraph = 15,
  kPack = 16,
  kTensor = 17,
};
// cudnnBackendAttributeType_t
enum Type : int {
  kOfHandle = 0,
  kOfDataType = 1,
  kOfInt64 = 3,
  kOfFloat = 4,
  kOfAddress = 6,
  kOfMode = 7,
  kOfHeuristics = 8,
  kOfNote = 11,
  kOfDescriptor = 15,
};

struct Descriptor;
using Shared = std::shared_ptr<Descriptor>;
struct Descriptor {
  int kind = 0;
  bool is_final = false;
  std::map<int, std::vector<int64_t>> numbers;  // addresses and enumerations, too
  std::map<int, Shared> parts;
  size_t engine = 0;  // of an engine, a config and a plan
};
std::map<void*, Shared> descriptors;
thread_local std::string last_error;

// What can be set, and must be before the descriptor is finalized.
struct Rule {
  int attribute, type;
  int64_t most = 1;
};
std::vector<Rule> rules_of(int kind) {
  auto operation = [](int first) {
    return std::vector<Rule>{{first, kOfFloat},          {first + 1, kOfFloat},
                             {first + 2, kOfDescriptor}, {first + 3, kOfDescriptor},
                             {first + 4, kOfDescriptor}, {first + 5, kOfDescriptor}};
  };
  switch (kind) {
    case kConvolution:
      return {{100, kOfDataType}, {101, kOfMode},     {102, kOfInt64, 8}, {103, kOfInt64, 8},
              {104, kOfInt64, 8}, {105, kOfInt64, 8}, {106, kOfInt64}};
    case kTensor:
      return {{900, kOfInt64},
              {901, kOfDataType},
              {902, kOfInt64, 8},
              {903, kOfInt64, 8},
              {906, kOfInt64}};
    case kForward: return operation(700);
    case kBackwardData: return operation(706);
    case kBackwardFilter: return operation(712);
    case kGraph: return {{800, kOfHandle}, {801, kOfDescriptor}};
    case kHeuristics: return {{200, kOfHeuristics}, {201, kOfDescriptor}};
    case kPlan: return {{400, kOfHandle}, {401, kOfDescriptor}};
    case kPack: return {{1000, kOfInt64, 8}, {1001, kOfAddress, 8}, {1003, kOfAddress}};
    default: return {};
  }
}
int first_attribute(int kind) { return kind == kForward ? 700 : kind == kBackwardData ? 706 : 712; }

Shared find(void* raw) {
  auto found = descriptors.find(raw);
  demand(found != descriptors.end(), "this is no descriptor");
  return found->second;
}
Shared find(void* raw, int kind, bool is_final) {
  Shared found = find(raw);
  demand(found->kind == kind, "a descriptor is of another kind");
  demand(found->is_final == is_final, "a descriptor is finalized too early or too late");
  return found;
}

void set(Descriptor& d, int attribute, int type, int64_t count, const void* elements) {
  demand(!d.is_final, "the descriptor is finalized");
  std::vector<Rule> rules = rules_of(d.kind);
  auto rule = std::ranges::find(rules, attribute, &Rule::attribute);
  demand(rule != rules.end(), "this kind of descriptor has no such attribute");
  demand(type == rule->type, "an attribute has another type");
  demand(elements && count >= 1 && count <= rule->most, "an attribute has another count");
  std::vector<int64_t>& numbers = d.numbers[attribute];
  for (int64_t i = 0; i < count; ++i) switch (type) {
      case kOfDescriptor:
        d.parts[attribute] = find(static_cast<void* const*>(elements)[i]);
        demand(d.parts[attribute]->is_final || attribute == 401, "a part is not finalized");
        break;
      case kOfInt64:
      case kOfHandle:
      case kOfAddress: numbers.push_back(static_cast<const int64_t*>(elements)[i]); break;
      case kOfFloat: numbers.push_back(int64_t(static_cast<const float*>(elements)[i])); break;
      default: numbers.push_back(static_cast<const int*>(elements)[i]);
    }
}

Volume volume_of(const Descriptor& tensor) {
  return {Element(tensor.numbers.at(901)[0]), tensor.numbers.at(902), tensor.numbers.at(903)};
}
Windows windows_of(const Descriptor& convolution) {
  const auto& n = convolution.numbers;
  return {n.at(103), n.at(102), n.at(105), n.at(104)};
}
// Input, weight and output.
std::array<Shared, 3> tensors_of(const Descriptor& operation) {
  int first = first_attribute(operation.kind);
  return {operation.parts.at(first + 4), operation.parts.at(first + 3),
          operation.parts.at(first + 5)};
}

void check_tensor(const Descriptor& d) {
  Volume volume = volume_of(d);
  demand(volume.element == Element::float32 || volume.element == Element::float16 ||
             volume.element == Element::bfloat16,
         "the data type is not one of Rushlight's");
  demand(volume.sizes.size() >= 4 && volume.sizes.size() <= 5, "a tensor has 4 or 5 dims");
  demand(volume.sizes.size() == volume.strides.size(), "there is a stride for each dim");
  auto is_positive = [](int64_t number) { return number > 0; };
  demand(std::ranges::all_of(volume.sizes, is_positive), "a size is not positive");
  demand(std::ranges::all_of(volume.strides, is_positive), "a stride is not positive");
  int64_t alignment = d.numbers.at(900)[0];
  demand(alignment > 0 && alignment % int64_t(bytes_of(volume.element)) == 0,
         "the alignment is no multiple of the element's size");
}

void check_convolution(const Descriptor& d) {
  size_t dims = size_t(d.numbers.at(106)[0]);
  demand(d.numbers.at(100)[0] == int(Element::float32), "sums are not of float32");
  demand(d.numbers.at(101)[0] == 1, "the filters are turned round");
  demand(dims == 2 || dims == 3, "there are 2 or 3 spatial dims");
  for (int list = 102; list <= 105; ++list)
    demand(d.numbers.at(list).size() == dims, "a list has not one number for each spatial dim");
}

void check_operation(const Descriptor& d) {
  int first = first_attribute(d.kind);
  demand(d.numbers.at(first)[0] == 1 && d.numbers.at(first + 1)[0] == 0, "only 1 and 0 are here");
  demand(d.parts.at(first + 2)->kind == kConvolution, "a part is no convolution");
  std::array<Volume, 3> volumes;
  for (size_t i = 0; i < 3; ++i) {
    demand(tensors_of(d)[i]->kind == kTensor, "a part is no tensor");
    volumes[i] = volume_of(*tensors_of(d)[i]);
  }
  const auto& [x, w, y] = volumes;
  demand(x.element == w.element && x.element == y.element, "the data types differ");
  demand(x.sizes[0] == y.sizes[0] && y.sizes[1] == w.sizes[0], "batch or channels do not fit");
  demand(x.sizes[1] % w.sizes[1] == 0 && w.sizes[0] % (x.sizes[1] / w.sizes[1]) == 0,
         "the channels are no whole groups");
  Windows windows = windows_of(*d.parts.at(first + 2));
  demand(x.sizes.size() == windows.stride.size() + 2, "the dims do not fit");
  for (size_t i = 0; i < windows.stride.size(); ++i) {
    int64_t room = x.sizes[i + 2] + windows.before[i] + windows.after[i] -
                   windows.dilation[i] * (w.sizes[i + 2] - 1) - 1;
    demand(y.sizes[i + 2] == room / windows.stride[i] + 1, "the output has another size");
    demand(windows.stride[i] < 10, "there is no code for such strides", kUnsupported);
  }
  // All have their channels first, or all last.
  auto has_either = [](const Volume& v) {
    return v.sizes[1] == 1 ||
           std::all_of(v.sizes.begin() + 2, v.sizes.end(), [](int64_t size) { return size == 1; });
  };
  bool is_last[3];
  for (size_t i = 0; i < 3; ++i) is_last[i] = volumes[i].strides[1] == 1;
  for (size_t i = 0; i < 3; ++i)
    for (size_t j = 0; j < i; ++j)
      demand(is_last[i] == is_last[j] || has_either(volumes[i]) || has_either(volumes[j]),
             "the layouts differ", kUnsupported);
}

bool fails(const char* step) {
  const char* wanted = std::getenv("RUSHLIGHT_SHIM_CUDNN_FAILS");
  return wanted && std::string_view(wanted) == step;
}

void finalize(Descriptor& d) {
  demand(!d.is_final, "the descriptor is finalized");
  for (const Rule& rule : rules_of(d.kind))
    demand(d.numbers.contains(rule.attribute) || d.parts.contains(rule.attribute),
           "an attribute is missing");
  switch (d.kind) {
    case kTensor: check_tensor(d); break;
    case kConvolution: check_convolution(d); break;
    case kForward:
    case kBackwardData:
    case kBackwardFilter: check_operation(d); break;
    case kGraph: demand(d.parts.at(801)->kind >= kForward, "a part is no operation"); break;
    case kHeuristics:
      demand(d.numbers.at(200)[0] == 3 || d.numbers.at(200)[0] == 2, "no such mode is here");
      demand(d.parts.at(201)->kind == kGraph, "a part is no graph");
      break;
    case kPlan:
      demand(d.parts.at(401)->kind == kConfig, "a part is no engine's configuration");
      d.engine = d.parts.at(401)->engine;
      demand(kEngines[d.engine].has_code, "there is no code", kUnsupported);
      demand(!fails("plan"), "it was told to fail", kInternalError);
      break;
    case kPack:
      demand(d.numbers.at(1000).size() == d.numbers.at(1001).size(), "the lists differ in length");
      break;
    default: demand(false, "this kind of descriptor is not finalized here");
  }
  d.is_final = true;
}

int64_t get(Descriptor& d, int attribute, int type, int64_t wanted, void* elements) {
  auto one_of = [&](int kind, int expected) {
    demand(d.kind == kind && type == expected, "an attribute is of another kind or type");
  };
  if (attribute == 202) {
    one_of(kHeuristics, kOfDescriptor);
    demand(d.is_final, "the descriptor is not finalized");
    if (d.numbers.at(200)[0] == 2) return 0;  // there are no other engines to fall back to
    for (int64_t i = 0; i < std::min(wanted, int64_t(kEngines.size())); ++i) {
      Shared config = find(static_cast<void**>(elements)[i], kConfig, false);
      config->engine = size_t(i);
      config->parts[201] = d.parts.at(201);
    }
    return int64_t(kEngines.size());
  }
  if (attribute == 300) {
    one_of(kConfig, kOfDescriptor);
    find(*static_cast<void**>(elements), kEngine, false)->engine = d.engine;
    return 1;
  }
  if (attribute == 1303) {
    one_of(kEngine, kOfNote);
    const std::vector<int>& notes = kEngines[d.engine].notes;
    std::copy_n(notes.begin(), std::min(wanted, int64_t(notes.size())),
                static_cast<int*>(elements));
    return int64_t(notes.size());
  }
  demand(attribute == 402, "there is no such attribute to read");
  one_of(kPlan, kOfInt64);
  demand(d.is_final && wanted == 1, "a plan is not finalized");
  *static_cast<int64_t*>(elements) = kEngines[d.engine].workspace;
  return 1;
}

// ---- runs --------------------------------------------------------------------------------------

struct Run {
  std::weak_ptr<Descriptor> plan;  // whose code it launches
  size_t engine;
  Product product;
  Windows windows;
  std::array<Volume, 3> volumes;
  std::array<void*, 3> data;
  void* workspace;

  void operator()() const {
    demand(!plan.expired(), "its plan was destroyed", kExecutionFailed);
    for (size_t i = 0; i < 3; ++i)
      open_range(static_cast<char*>(data[i]), volumes[i].span() * bytes_of(volumes[i].element));
    int64_t room = kEngines[engine].workspace;
    if (room > 0) use_work(static_cast<char*>(workspace), room, room);
    std::this_thread::sleep_for(std::chrono::milliseconds(kEngines[engine].milliseconds));
    bool rounds = std::ranges::count(kEngines[engine].notes, kTensorCore) > 0;
    convolve(product, windows, volumes, data, rounds);
    ++runs[engine];
  }
};

Run run_of(const Shared& plan, const Descriptor& pack) {
  const Descriptor& operation = *plan->parts.at(401)->parts.at(201)->parts.at(801);
  Product product = operation.kind == kForward        ? Product::output
                    : operation.kind == kBackwardData ? Product::input
                                                      : Product::weight;
  const Shared& convolution = operation.parts.at(first_attribute(operation.kind) + 2);
  Run run{plan, plan->engine, product, windows_of(*convolution), {}, {}, nullptr};
  const auto &ids = pack.numbers.at(1000), &addresses = pack.numbers.at(1001);
  for (size_t i = 0; i < 3; ++i) {
    const Descriptor& tensor = *tensors_of(operation)[i];
    auto id = std::ranges::find(ids, tensor.numbers.at(906)[0]);
    demand(id != ids.end(), "a tensor has no address");
    int64_t address = addresses[size_t(id - ids.begin())];
    demand(address % tensor.numbers.at(900)[0] == 0, "an address is misaligned");
    run.volumes[i] = volume_of(tensor);
    run.data[i] = reinterpret_cast<void*>(address);
  }
  run.workspace = reinterpret_cast<void*>(pack.numbers.at(1003)[0]);
  demand(!kEngines[run.engine].is_forbidden, "it takes an engine that it promised not to take");
  return run;
}

// What every entry point does: failures become a status and its text.
int answer(const char* name, const std::function<void()>& f) {
  int status = kDone;
  try {
    f();
  } catch (const Failure& failure) {
    status = failure.status;
    last_error = failure.rule;
  } catch (const std::exception& error) {  // of open_range
    status = kBadParameter;
    last_error = error.what();
  }
  if (status != kDone && status / 1000 != 3)
    std::fprintf(stderr, "cuda shim: %s: %s\n", name, last_error.c_str());
  return status;
}

int number_of(const char* variable, int otherwise) {
  const char* value = std::getenv(variable);
  return value ? std::atoi(value) : otherwise;
}

}  // namespace
}  // namespace shim

using namespace shim;

SHIM_API size_t cudnnGetVersion() {
  return size_t(number_of("RUSHLIGHT_SHIM_CUDNN_VERSION", 92800));
}
SHIM_API size_t cudnnGetCudartVersion() {
  return size_t(number_of("RUSHLIGHT_SHIM_CUDNN_CUDA", 12080));
}

SHIM_API const char* cudnnGetErrorString(int status) {
  switch (status / 1000) {
    case 1: return "CUDNN_STATUS_NOT_INITIALIZED";
    case 2: return "CUDNN_STATUS_BAD_PARAM";
    case 3: return "CUDNN_STATUS_NOT_SUPPORTED";
    case 4: return "CUDNN_STATUS_INTERNAL_ERROR";
    default: return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}
SHIM_API void cudnnGetLastErrorString(char* text, size_t bytes) {
  std::snprintf(text, bytes, "%s", last_error.c_str());
}

SHIM_API int cudnnCreate(void** handle) { return make_handle(handle) ? kNoHandle : kDone; }
SHIM_API int cudnnSetStream(void* handle, void* stream) {
  return bind_handle(handle, stream) ? kNoHandle : kDone;
}

SHIM_API int cudnnBackendCreateDescriptor(int kind, void** result) {
  std::lock_guard lock(driver_mutex);
  Shared made = std::make_shared<Descriptor>();
  made->kind = kind;
  *result = made.get();
  descriptors[made.get()] = made;
  return kDone;
}
SHIM_API int cudnnBackendDestroyDescriptor(void* raw) {
  std::lock_guard lock(driver_mutex);
  return descriptors.erase(raw) ? kDone : kBadParameter;
}
SHIM_API int cudnnBackendSetAttribute(void* raw, int attribute, int type, int64_t count,
                                      const void* elements) {
  std::lock_guard lock(driver_mutex);
  return answer("cudnnBackendSetAttribute",
                [&] { set(*find(raw), attribute, type, count, elements); });
}
SHIM_API int cudnnBackendFinalize(void* raw) {
  std::lock_guard lock(driver_mutex);
  return answer("cudnnBackendFinalize", [&] { finalize(*find(raw)); });
}
SHIM_API int cudnnBackendGetAttribute(void* raw, int attribute, int type, int64_t wanted,
                                      int64_t* count, void* elements) {
  std::lock_guard lock(driver_mutex);
  return answer("cudnnBackendGetAttribute",
                [&] { *count = get(*find(raw), attribute, type, wanted, elements); });
}

SHIM_API int cudnnBackendExecute(void* handle, void* plan, void* pack) {
  std::lock_guard lock(driver_mutex);
  return answer("cudnnBackendExecute", [&] {
    demand(begin_call(handle) == kSolved, "the handle is not of the current device", kNoHandle);
    demand(!fails("execute"), "it was told to fail", kExecutionFailed);
    Run run = run_of(find(plan, kPlan, true), *find(pack, kPack, true));
    auto work = [run] {
      int status = answer("a convolution", run);
      return end_call() == kSolved && status == kDone ? kSuccess : kLaunchFailed;
    };
    Stream* stream = find_stream(static_cast<SolverHandle*>(handle)->stream);
    finish(stream);
    Result result = capture_of(stream) ? submit(stream, "cudnn", work) : work();
    demand(result == kSuccess, last_error.c_str(), kExecutionFailed);
  });
}

// How often an engine has run, and how many plans there are: for tests.
SHIM_API int shim_cudnn_runs(int engine) {
  std::lock_guard lock(driver_mutex);
  return runs.at(size_t(engine));
}
SHIM_API int shim_cudnn_plans() {
  std::lock_guard lock(driver_mutex);
  return int(std::ranges::count_if(
      descriptors, [](const auto& d) { return d.second->kind == kPlan && d.second->is_final; }));
}
