// Owns the steps of the optimizers as ops: each updates all parameters of a group in one pass. The
// formulas are in foreach_step.h, their sources in rushlight/optim.
//
// Steps count from 1. A differentiable step is made of ops, which are recorded; its cost is theirs.
#include <cmath>

#include "core/ops/foreach/foreach_update.h"
#include "core/ops/op.h"

namespace rushlight {
namespace {

template <class Step>
int64_t update(const char* op, bool differentiable, const Step& step,
               std::initializer_list<StepList> lists, const Tensor& scaling = {}) {
  if (differentiable) return update_recorded(method_of(step), &step, lists);
  return update_all(op, method_of(step), &step, lists, scaling);
}

// What a parameter keeps of itself when its weight decay is decoupled, and what is left of the L2
// penalty.
struct Decay {
  double shrink, penalty;
  Decay(double lr, double weight_decay, bool decoupled)
      : shrink(decoupled ? 1 - lr * weight_decay : 1), penalty(decoupled ? 0 : weight_decay) {}
};

}  // namespace

OP(_fused_sgd_,
   "(Tensor[] params, Tensor[] grads, Tensor[] buffers, float lr, float momentum, float dampening, "
   "float weight_decay, bool nesterov, bool maximize, bool first, bool differentiable=False, "
   "Tensor? scaling=None) -> int", {
  .home    = "private",
  .doc     = R"(One step of SGD on all parameters; returns how many elements it updated.

Without momentum there are no buffers. `first` says that the buffers hold nothing yet. For
scaling see update_all.)",
  .seen    = Seen::whole,
  .forward = [](TensorList params, TensorList grads, TensorList buffers, double lr, double momentum,
                double dampening, double weight_decay, bool nesterov, bool maximize, bool first,
                bool differentiable, const Tensor& scaling) {
    SgdStep step{lr, momentum, dampening, weight_decay, nesterov, maximize, first};
    return update("_fused_sgd_", differentiable, step, {params, grads, {buffers, momentum != 0}},
                  scaling);
  },
})

OP(_fused_adam_,
   "(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, "
   "Tensor[] max_exp_avg_sqs, float lr, float beta1, float beta2, float eps, float weight_decay, "
   "bool decoupled, bool amsgrad, bool maximize, float step, bool differentiable=False, "
   "Tensor? scaling=None) -> int", {
  .home    = "private",
  .doc     = R"(Step `step` of Adam on all parameters; returns how many elements it updated.

`decoupled` shrinks the parameters themselves, which makes it AdamW. Without amsgrad there are no
max_exp_avg_sqs. For scaling see update_all.)",
  .seen    = Seen::whole,
  .forward = [](TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                TensorList max_exp_avg_sqs, double lr, double beta1, double beta2, double eps,
                double weight_decay, bool decoupled, bool amsgrad, bool maximize, double step,
                bool differentiable, const Tensor& scaling) {
    Decay decay(lr, weight_decay, decoupled);
    AdamStep adam{lr / (1 - std::pow(beta1, step)), beta1, beta2,
                  std::sqrt(1 - std::pow(beta2, step)), eps, decay.penalty, decay.shrink,
                  amsgrad, maximize};
    return update("_fused_adam_", differentiable, adam,
                  {params, grads, exp_avgs, exp_avg_sqs, {max_exp_avg_sqs, amsgrad}},
                  scaling);
  },
})

OP(_captured_adam_,
   "(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, "
   "Tensor[] max_exp_avg_sqs, Tensor rates, float beta1, float beta2, float eps, "
   "float weight_decay, bool decoupled, bool amsgrad, bool maximize, Tensor? scaling=None) "
   "-> int", {
  .home    = "private",
  .doc     = R"(A step of Adam on the GPU; `rates` has what depends on lr and the count of steps.

These are the members rate, root and shrink of AdamStep, in float64, so that a CUDA graph computes
them anew in each replay. The rest is as in _fused_adam_.)",
  .seen    = Seen::whole,
  .forward = [](TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                TensorList max_exp_avg_sqs, const Tensor& rates, double beta1, double beta2,
                double eps, double weight_decay, bool decoupled, bool amsgrad, bool maximize,
                const Tensor& scaling) {
    CHECK(rates.device().is_cuda() && rates.dtype() == DType::float64 && rates.numel() == 3 &&
              rates.is_contiguous(),
          "rates must be 3 numbers of float64 on the GPU.");
    AdamStep adam{0, beta1, beta2, 1, eps, decoupled ? 0 : weight_decay, 1, amsgrad, maximize};
    return update_all("_captured_adam_", Method::Adam, &adam,
                      {params, grads, exp_avgs, exp_avg_sqs, {max_exp_avg_sqs, amsgrad}}, scaling,
                      rates);
  },
})

OP(_fused_rmsprop_,
   "(Tensor[] params, Tensor[] grads, Tensor[] square_avgs, Tensor[] momentum_buffers, "
   "Tensor[] grad_avgs, float lr, float alpha, float eps, float weight_decay, float momentum, "
   "bool centered, bool maximize, bool differentiable=False) -> int", {
  .home    = "private",
  .doc     = R"(One step of RMSprop on all parameters; returns how many elements it updated.

Without momentum there are no momentum_buffers, and unless centered no grad_avgs.)",
  .seen    = Seen::whole,
  .forward = [](TensorList params, TensorList grads, TensorList square_avgs,
                TensorList momentum_buffers, TensorList grad_avgs, double lr, double alpha,
                double eps, double weight_decay, double momentum, bool centered, bool maximize,
                bool differentiable) {
    RmspropStep step{lr, alpha, eps, weight_decay, momentum, centered, maximize};
    return update("_fused_rmsprop_", differentiable, step,
                  {params, grads, square_avgs, {momentum_buffers, momentum != 0},
                   {grad_avgs, centered}});
  },
})

OP(_fused_adagrad_,
   "(Tensor[] params, Tensor[] grads, Tensor[] sums, float lr, float lr_decay, float weight_decay, "
   "float eps, bool maximize, float step, bool differentiable=False, "
   "Tensor? scaling=None) -> int", {
  .home    = "private",
  .doc     = R"(Step `step` of Adagrad on all parameters; returns how many elements it updated.

For scaling see update_all.)",
  .seen    = Seen::whole,
  .forward = [](TensorList params, TensorList grads, TensorList sums, double lr, double lr_decay,
                double weight_decay, double eps, bool maximize, double step, bool differentiable,
                const Tensor& scaling) {
    AdagradStep adagrad{lr / (1 + (step - 1) * lr_decay), weight_decay, eps, maximize};
    return update("_fused_adagrad_", differentiable, adagrad, {params, grads, sums},
                  scaling);
  },
})

OP(_fused_adadelta_,
   "(Tensor[] params, Tensor[] grads, Tensor[] square_avgs, Tensor[] acc_deltas, float lr, "
   "float rho, float eps, float weight_decay, bool maximize, bool differentiable=False) -> int", {
  .home    = "private",
  .doc     = R"(One step of Adadelta on all parameters; returns how many elements it updated.)",
  .seen    = Seen::whole,
  .forward = [](TensorList params, TensorList grads, TensorList square_avgs, TensorList acc_deltas,
                double lr, double rho, double eps, double weight_decay, bool maximize,
                bool differentiable) {
    AdadeltaStep step{lr, rho, eps, weight_decay, maximize};
    return update("_fused_adadelta_", differentiable, step,
                  {params, grads, square_avgs, acc_deltas});
  },
})

OP(_fused_adamax_,
   "(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_infs, float lr, float beta1, "
   "float beta2, float eps, float weight_decay, bool maximize, float step, "
   "bool differentiable=False) -> int", {
  .home    = "private",
  .doc     = R"(Step `step` of Adamax on all parameters; returns how many elements it updated.)",
  .seen    = Seen::whole,
  .forward = [](TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_infs,
                double lr, double beta1, double beta2, double eps, double weight_decay,
                bool maximize, double step, bool differentiable) {
    AdamaxStep adamax{lr / (1 - std::pow(beta1, step)), beta1, beta2, eps, weight_decay, maximize};
    return update("_fused_adamax_", differentiable, adamax, {params, grads, exp_avgs, exp_infs});
  },
})

OP(_fused_nadam_,
   "(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, float lr, "
   "float beta1, float beta2, float eps, float weight_decay, bool decoupled, bool maximize, "
   "float mu, float mu_next, float mu_product, float step, bool differentiable=False) -> int", {
  .home    = "private",
  .doc     = R"(Step `step` of NAdam on all parameters; returns how many elements it updated.

mu and mu_next are the momentum of this step and of the next, mu_product that of all steps.)",
  .seen    = Seen::whole,
  .forward = [](TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                double lr, double beta1, double beta2, double eps, double weight_decay,
                bool decoupled, bool maximize, double mu, double mu_next, double mu_product,
                double step, bool differentiable) {
    Decay decay(lr, weight_decay, decoupled);
    NadamStep nadam{lr * (1 - mu) / (1 - mu_product),
                    lr * mu_next / (1 - mu_product * mu_next),
                    beta1, beta2, std::sqrt(1 - std::pow(beta2, step)), eps, decay.penalty,
                    decay.shrink, maximize};
    return update("_fused_nadam_", differentiable, nadam, {params, grads, exp_avgs, exp_avg_sqs});
  },
})

OP(_fused_radam_,
   "(Tensor[] params, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, float lr, "
   "float beta1, float beta2, float eps, float weight_decay, bool decoupled, bool maximize, "
   "float step, bool differentiable=False) -> int", {
  .home    = "private",
  .doc     = R"(Step `step` of RAdam on all parameters; returns how many elements it updated.)",
  .seen    = Seen::whole,
  .forward = [](TensorList params, TensorList grads, TensorList exp_avgs, TensorList exp_avg_sqs,
                double lr, double beta1, double beta2, double eps, double weight_decay,
                bool decoupled, bool maximize, double step, bool differentiable) {
    Decay decay(lr, weight_decay, decoupled);
    double power = std::pow(beta2, step), correction = 1 - power;
    // How many terms the mean square averages, in the limit and now; few terms are not trusted.
    double rho_limit = 2 / (1 - beta2) - 1, rho = rho_limit - 2 * step * power / correction;
    bool rectified = rho > 5;
    double rate = lr / (1 - std::pow(beta1, step));
    if (rectified)
      rate *= std::sqrt(correction * (rho - 4) * (rho - 2) * rho_limit /
                        ((rho_limit - 4) * (rho_limit - 2) * rho));
    RadamStep radam{rate, beta1, beta2, eps, decay.penalty, decay.shrink, rectified, maximize};
    return update("_fused_radam_", differentiable, radam, {params, grads, exp_avgs, exp_avg_sqs});
  },
})

OP(_fused_asgd_,
   "(Tensor[] params, Tensor[] grads, Tensor[] averages, float eta, float lambd, "
   "float weight_decay, float mu, bool maximize, bool differentiable=False) -> int", {
  .home    = "private",
  .doc     = R"(One step of averaged SGD on all parameters; returns how many elements it updated.)",
  .seen    = Seen::whole,
  .forward = [](TensorList params, TensorList grads, TensorList averages, double eta, double lambd,
                double weight_decay, double mu, bool maximize, bool differentiable) {
    AsgdStep step{eta, lambd, weight_decay, mu, maximize};
    return update("_fused_asgd_", differentiable, step, {params, grads, averages});
  },
})

OP(_fused_rprop_,
   "(Tensor[] params, Tensor[] grads, Tensor[] prevs, Tensor[] step_sizes, float eta_minus, "
   "float eta_plus, float step_min, float step_max, bool maximize, bool differentiable=False) "
   "-> int", {
  .home    = "private",
  .doc     = R"(One step of Rprop on all parameters; returns how many elements it updated.)",
  .seen    = Seen::whole,
  .forward = [](TensorList params, TensorList grads, TensorList prevs, TensorList step_sizes,
                double eta_minus, double eta_plus, double step_min, double step_max, bool maximize,
                bool differentiable) {
    RpropStep step{eta_minus, eta_plus, step_min, step_max, maximize};
    return update("_fused_rprop_", differentiable, step, {params, grads, prevs, step_sizes});
  },
})

OP(_unscale_,
   "(Tensor[] tensors, Tensor found_inf, Tensor inv_scale) -> int", {
  .home    = "private",
  .doc     = R"(Multiplies tensors by inv_scale in place; returns how many there were.

found_inf becomes 1 if an element is not finite.)",
  .seen    = Seen::whole,
  .forward = [](TensorList tensors, const Tensor& found_inf, const Tensor& inv_scale) {
    unscale_all("_unscale_", tensors, found_inf, inv_scale);
    return int64_t(tensors.size());
  },
})

}  // namespace rushlight
