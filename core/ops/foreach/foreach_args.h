// Owns the arguments of kernels over many tensors, as host and device both see them.
#pragma once

#include <stdint.h>

namespace rushlight {

// What a step of each optimizer does to all elements alike; foreach_step.h has the formulas.
struct SgdStep {
  double lr, momentum, dampening, weight_decay;
  bool nesterov, maximize;
  bool first;  // the buffers hold nothing yet
};

struct AdamStep {
  double rate, beta1, beta2;       // rate: with the bias correction of the mean
  double root, eps, weight_decay;  // root: of 1 - beta2^t
  double shrink;                   // of the parameter, by decoupled weight decay
  bool amsgrad, maximize;
};

struct RmspropStep {
  double lr, alpha, eps, weight_decay, momentum;
  bool centered, maximize;
};

struct AdagradStep {
  double rate, weight_decay, eps;
  bool maximize;
};

struct AdadeltaStep {
  double lr, rho, eps, weight_decay;
  bool maximize;
};

struct AdamaxStep {
  double rate, beta1, beta2, eps, weight_decay;
  bool maximize;
};

struct NadamStep {
  double grad_rate, mean_rate;  // learning rates along the gradient and along its mean
  double beta1, beta2, root, eps, weight_decay;
  double shrink;  // of the parameter, by decoupled weight decay
  bool maximize;
};

struct RadamStep {
  double rate;  // with the bias corrections, and with the rectification
  double beta1, beta2, eps, weight_decay, shrink;
  bool rectified;  // there is a rectification, so divide by the root of the mean square
  bool maximize;
};

struct AsgdStep {
  double eta, lambd, weight_decay, mu;
  bool maximize;
};

struct RpropStep {
  double eta_minus, eta_plus, step_min, step_max;
  bool maximize;
};

#define RUSHLIGHT_FOR_EACH_METHOD(_) \
  _(Sgd) _(Adam) _(Rmsprop) _(Adagrad) _(Adadelta) _(Adamax) _(Nadam) _(Radam) _(Asgd) _(Rprop)

enum class Method : uint8_t {
#define RUSHLIGHT_LIST(name) name,
  RUSHLIGHT_FOR_EACH_METHOD(RUSHLIGHT_LIST)
#undef RUSHLIGHT_LIST
};
#define RUSHLIGHT_COUNT(name) +1
inline constexpr int kMethods = 0 RUSHLIGHT_FOR_EACH_METHOD(RUSHLIGHT_COUNT);
#undef RUSHLIGHT_COUNT
#define RUSHLIGHT_METHOD(name) \
  constexpr Method method_of(const name##Step&) { return Method::name; }
RUSHLIGHT_FOR_EACH_METHOD(RUSHLIGHT_METHOD)
#undef RUSHLIGHT_METHOD

inline constexpr int kMaxStepArrays = 5;

// The tensors of one launch: as many as fit into the 4 KB that a kernel's arguments may have. Each
// is split into chunks, one for each block.
inline constexpr int kManyTensors = 64, kChunk = 4096;
struct ManyTensors {
  void* arrays[kMaxStepArrays][kManyTensors];  // those without are null
  int64_t numel[kManyTensors];
  uint32_t first_block[kManyTensors];
  uint64_t is_aligned;  // bit t: all arrays of tensor t begin at multiples of 16 bytes
  int32_t count;
};

// Norms of order 2, 1 and infinity.
enum class NormKind : int32_t { euclidean, sum, largest };

}  // namespace rushlight
