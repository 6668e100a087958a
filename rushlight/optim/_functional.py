"""The steps of optimizers as functions, with state that the program keeps.

Each does what the step of the class does; those of SGD, Adam and AdamW are beside their classes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from rushlight import Tensor
from rushlight.optim._fused import FusedOptimizer
from rushlight.optim._options import check_counts, refuse_scaling
from rushlight.optim.adadelta import Adadelta
from rushlight.optim.adagrad import Adagrad
from rushlight.optim.adamax import Adamax
from rushlight.optim.asgd import ASGD
from rushlight.optim.nadam import NAdam
from rushlight.optim.radam import RAdam
from rushlight.optim.rmsprop import RMSprop
from rushlight.optim.rprop import Rprop

__all__ = [
    "adadelta",
    "adagrad",
    "adamax",
    "asgd",
    "nadam",
    "radam",
    "rmsprop",
    "rprop",
]


def _take_step(
    optimizer: type[FusedOptimizer],
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    state: Mapping[str, Sequence[Any]],
    **options: Any,
) -> None:
    """Takes a step of an optimizer, in place.

    Args:
        optimizer: its class.
        params: the parameters.
        grads: their gradients.
        state: for each entry of a parameter's state those of all parameters; none if it is unused.
        options: those of the group.
    """
    function = optimizer.__name__.lower()
    used = {name: values for name, values in state.items() if values or name == "step"}
    for name, values in used.items():
        if len(values) != len(params):
            raise ValueError(
                f"{function}: {len(values)} entries '{name}' for {len(params)} parameters"
            )
    states = [dict(zip(used, values, strict=True)) for values in zip(*used.values(), strict=True)]
    check_counts(function, (state["step"] for state in states))
    for each in states:
        each.update((name, float(each[name])) for name in optimizer._numbers)
    stepper = optimizer.__new__(optimizer)
    stepper.state = defaultdict(dict, zip(params, states, strict=True))
    stepper._step_with({"params": params, **options}, list(params), list(grads))
    for i, each in enumerate(states):
        for name in optimizer._numbers:
            state[name][i].fill_(each[name])


def adadelta(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    acc_deltas: list[Tensor],
    state_steps: list[Tensor],
    capturable: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
) -> None:
    """Takes a step of Adadelta with state that the program keeps, in place.

    Args:
        params: the parameters.
        grads: their gradients.
        square_avgs, acc_deltas: for each the means of the squares of its gradient and of its steps.
        state_steps: for each the number of steps before this one, in a tensor of one element.
        capturable, foreach, has_complex: accepted for PyTorch's sake.
        differentiable, lr, rho, eps, weight_decay, maximize: those of the class Adadelta.
    """
    state = {"square_avg": square_avgs, "acc_delta": acc_deltas, "step": state_steps}
    _take_step(
        Adadelta,
        params,
        grads,
        state,
        differentiable=differentiable,
        lr=lr,
        rho=rho,
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
    )


def adagrad(
    params: list[Tensor],
    grads: list[Tensor],
    state_sums: list[Tensor],
    state_steps: list[Tensor],
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    weight_decay: float,
    lr_decay: float,
    eps: float,
    maximize: bool,
) -> None:
    """Takes a step of Adagrad with state that the program keeps, in place.

    Args:
        params: the parameters.
        grads: their gradients.
        state_sums: for each the sum of the squares of its gradient.
        state_steps: for each the number of steps before this one, in a tensor of one element.
        fused, has_sparse_grad, foreach, has_complex: accepted for PyTorch's sake.
        grad_scale, found_inf: must be None.
        differentiable, lr, weight_decay, lr_decay, eps, maximize: those of the class Adagrad.
    """
    refuse_scaling("adagrad", grad_scale, found_inf)
    state = {"sum": state_sums, "step": state_steps}
    _take_step(
        Adagrad,
        params,
        grads,
        state,
        differentiable=differentiable,
        lr=lr,
        weight_decay=weight_decay,
        lr_decay=lr_decay,
        eps=eps,
        maximize=maximize,
    )


def adamax(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_infs: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
) -> None:
    """Takes a step of Adamax with state that the program keeps, in place.

    Args:
        params: the parameters.
        grads: their gradients.
        exp_avgs, exp_infs: for each the mean of its gradient and the largest size of it.
        state_steps: for each the number of steps before this one, in a tensor of one element.
        foreach, capturable, has_complex: accepted for PyTorch's sake.
        maximize, differentiable, eps, lr, weight_decay: those of the class Adamax.
        beta1, beta2: its betas.
    """
    state = {"exp_avg": exp_avgs, "exp_inf": exp_infs, "step": state_steps}
    _take_step(
        Adamax,
        params,
        grads,
        state,
        maximize=maximize,
        differentiable=differentiable,
        eps=eps,
        lr=lr,
        weight_decay=weight_decay,
        betas=(beta1, beta2),
    )


def asgd(
    params: list[Tensor],
    grads: list[Tensor],
    axs: list[Tensor],
    mus: list[Tensor],
    etas: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lambd: float,
    lr: float | Tensor,
    t0: float,
    alpha: float,
    weight_decay: float,
) -> None:
    """Takes a step of ASGD with state that the program keeps, in place.

    Args:
        params: the parameters.
        grads: their gradients.
        axs, mus, etas: for each its average, the factor of that, and its learning rate.
        state_steps: for each the number of steps before this one, in a tensor of one element.
        foreach, capturable, has_complex: accepted for PyTorch's sake.
        maximize, differentiable, lambd, lr, t0, alpha, weight_decay: those of the class ASGD.
    """
    state = {"ax": axs, "mu": mus, "eta": etas, "step": state_steps}
    _take_step(
        ASGD,
        params,
        grads,
        state,
        maximize=maximize,
        differentiable=differentiable,
        lambd=lambd,
        lr=lr,
        t0=t0,
        alpha=alpha,
        weight_decay=weight_decay,
    )


def nadam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    mu_products: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    capturable: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    momentum_decay: float,
    eps: float,
) -> None:
    """Takes a step of NAdam with state that the program keeps, in place.

    Args:
        params: the parameters.
        grads: their gradients.
        exp_avgs, exp_avg_sqs, mu_products: for each the means of its gradient and of the square,
            and the product of its momenta.
        state_steps: for each the number of steps before this one, in a tensor of one element.
        foreach, capturable, has_complex: accepted for PyTorch's sake.
        decoupled_weight_decay, differentiable, maximize, lr, weight_decay, momentum_decay, eps:
            those of the class NAdam.
        beta1, beta2: its betas.
    """
    state = {
        "exp_avg": exp_avgs,
        "exp_avg_sq": exp_avg_sqs,
        "mu_product": mu_products,
        "step": state_steps,
    }
    _take_step(
        NAdam,
        params,
        grads,
        state,
        decoupled_weight_decay=decoupled_weight_decay,
        differentiable=differentiable,
        maximize=maximize,
        lr=lr,
        weight_decay=weight_decay,
        momentum_decay=momentum_decay,
        eps=eps,
        betas=(beta1, beta2),
    )


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float | Tensor,
    weight_decay: float,
    eps: float,
) -> None:
    """Takes a step of RAdam with state that the program keeps, in place.

    Args:
        params: the parameters.
        grads: their gradients.
        exp_avgs, exp_avg_sqs: for each the means of its gradient and of the square.
        state_steps: for each the number of steps before this one, in a tensor of one element.
        foreach, capturable, has_complex: accepted for PyTorch's sake.
        decoupled_weight_decay, differentiable, maximize, lr, weight_decay, eps: those of the class
            RAdam.
        beta1, beta2: its betas.
    """
    state = {"exp_avg": exp_avgs, "exp_avg_sq": exp_avg_sqs, "step": state_steps}
    _take_step(
        RAdam,
        params,
        grads,
        state,
        decoupled_weight_decay=decoupled_weight_decay,
        differentiable=differentiable,
        maximize=maximize,
        lr=lr,
        weight_decay=weight_decay,
        eps=eps,
        betas=(beta1, beta2),
    )


def rmsprop(
    params: list[Tensor],
    grads: list[Tensor],
    square_avgs: list[Tensor],
    grad_avgs: list[Tensor],
    momentum_buffer_list: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    maximize: bool = False,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    *,
    lr: float | Tensor,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
) -> None:
    """Takes a step of RMSprop with state that the program keeps, in place.

    Args:
        params: the parameters.
        grads: their gradients.
        square_avgs, grad_avgs, momentum_buffer_list: for each the mean square of its gradient, the
            mean where it is centered, and the buffer of momentum where there is any.
        state_steps: for each the number of steps before this one, in a tensor of one element.
        foreach, capturable, has_complex: accepted for PyTorch's sake.
        maximize, differentiable, lr, alpha, eps, weight_decay, momentum, centered: those of the
            class RMSprop.
    """
    state = {
        "square_avg": square_avgs,
        "grad_avg": grad_avgs,
        "momentum_buffer": momentum_buffer_list,
        "step": state_steps,
    }
    _take_step(
        RMSprop,
        params,
        grads,
        state,
        maximize=maximize,
        differentiable=differentiable,
        lr=lr,
        alpha=alpha,
        eps=eps,
        weight_decay=weight_decay,
        momentum=momentum,
        centered=centered,
    )


def rprop(
    params: list[Tensor],
    grads: list[Tensor],
    prevs: list[Tensor],
    step_sizes: list[Tensor],
    state_steps: list[Tensor],
    foreach: bool | None = None,
    capturable: bool = False,
    maximize: bool = False,
    differentiable: bool = False,
    has_complex: bool = False,
    *,
    step_size_min: float,
    step_size_max: float,
    etaminus: float,
    etaplus: float,
) -> None:
    """Takes a step of Rprop with state that the program keeps, in place.

    Args:
        params: the parameters.
        grads: their gradients.
        prevs, step_sizes: for each its last gradient and the size of its step.
        state_steps: for each the number of steps before this one, in a tensor of one element.
        foreach, capturable, has_complex: accepted for PyTorch's sake.
        maximize, differentiable: those of the class Rprop.
        step_size_min, step_size_max: its step_sizes.
        etaminus, etaplus: its etas.
    """
    state = {"prev": prevs, "step_size": step_sizes, "step": state_steps}
    _take_step(
        Rprop,
        params,
        grads,
        state,
        maximize=maximize,
        differentiable=differentiable,
        step_sizes=(step_size_min, step_size_max),
        etas=(etaminus, etaplus),
    )
