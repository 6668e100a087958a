"""Stochastic gradient descent.

Owns the options and the state of SGD; the arithmetic is one fused op over a whole group.
"""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight.optim._fused import FusedOptimizer, decayed
from rushlight.optim._options import (
    check_at_least_zero,
    check_implementation,
    check_lr,
    refuse_scaling,
)
from rushlight.optim.optimizer import ParamsT

TensorLists = tuple[list[Tensor], list[Tensor], list[Tensor]]


class SGD(FusedOptimizer):
    """Stochastic gradient descent with momentum, weight decay and Nesterov's method.

    For a parameter p with gradient g (-g with maximize), and buf = g in the first step:

        g   = g + weight_decay * p
        buf = momentum * buf + (1 - dampening) * g
        g   = g + momentum * buf with nesterov, else buf
        p   = p - lr * g

    Source: Sutskever et al., On the importance of initialization and momentum in deep learning
    (2013), with the learning rate outside the buffer, as in PyTorch.

    Args:
        params: tensors, (name, tensor) pairs, or dicts with "params" and options of the group.
        lr: learning rate.
        momentum: share of the buffer that a step keeps; 0 keeps no buffer.
        dampening: share of the gradient that does not enter the buffer.
        weight_decay: factor of the L2 penalty.
        nesterov: look ahead along the buffer; needs momentum and no dampening.
        maximize: go up the gradient.
        foreach: accepted for PyTorch's sake; there is one implementation, which is fused.
        differentiable: record the step, so that backward goes through it; parameters may then
            be results of operations. Slower: such a step is made of ordinary operations.
        fused: as foreach; with it, GradScaler does not wait for the GPU to learn whether it leaves
            the step out.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer = torch.optim.SGD([weight], lr=0.5, momentum=0.9)
        >>> weight.sum().backward()
        >>> optimizer.step()
        >>> weight.tolist()
        [0.5, 0.5]
    """

    _has_ops = True

    def __init__(
        self,
        params: ParamsT,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr("SGD", lr)
        check_at_least_zero("SGD", momentum=momentum, weight_decay=weight_decay)
        check_implementation("SGD", foreach, fused, differentiable)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                "SGD: Nesterov momentum requires a momentum and zero dampening, but got "
                f"momentum={momentum} and dampening={dampening}"
            )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def _step_dense(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor]) -> None:
        if group["momentum"]:
            starting, running = self._with_buffers(params, grads)
            self._update_with(group, *starting, first=True)
            self._update_with(group, *running, first=False)
        else:
            self._update_with(group, params, grads, [], first=False)

    def _update_in_ops(self, group: dict[str, Any], param: Tensor, grad: Tensor) -> None:
        momentum = group["momentum"]
        grad = decayed(group, param, grad)
        if momentum:
            state = self.state[param]
            buffer = state.get("momentum_buffer")
            fresh = (1 - group["dampening"]) * grad
            buffer = grad if buffer is None else momentum * buffer + fresh
            state["momentum_buffer"] = buffer
            grad = grad + momentum * buffer if group["nesterov"] else buffer
        param.sub_(group["lr"] * grad)

    def _update_sparse(self, group: dict[str, Any], param: Tensor, grad: Tensor) -> None:
        if group["weight_decay"]:
            raise RuntimeError(
                "SGD: weight_decay option is not compatible with sparse gradients, because it "
                "changes all elements. Set it to 0."
            )
        momentum = group["momentum"]
        if momentum:
            state = self.state[param]
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = grad.clone()
            else:
                buffer = buffer * momentum + grad * (1 - group["dampening"])
            state["momentum_buffer"] = buffer
            grad = grad + buffer * momentum if group["nesterov"] else buffer
        param.add_(grad, alpha=-float(group["lr"]))

    def _with_buffers(
        self, params: list[Tensor], grads: list[Tensor]
    ) -> tuple[TensorLists, TensorLists]:
        """Returns parameters, gradients and buffers: of those without a step yet, and the others.

        A parameter takes its first step when it first has a gradient, so both may be in a group.
        """
        starting: TensorLists = ([], [], [])
        running: TensorLists = ([], [], [])
        for param, grad in zip(params, grads, strict=True):
            state = self.state[param]
            buffer = state.get("momentum_buffer")
            lists = running
            if buffer is None:
                if param.is_cuda and rl.cuda.is_current_stream_capturing():
                    raise RuntimeError(
                        "SGD.step: a capture cannot begin the momentum of a parameter. Take a step "
                        "before."
                    )
                buffer = state["momentum_buffer"] = rl.empty_like(param)
                lists = starting
                if self._counted is not None:
                    self._counted.append(state)
            lists[0].append(param)
            lists[1].append(grad)
            lists[2].append(buffer)
        return starting, running

    def _take_back(self, counted: list[dict[str, Any]]) -> None:
        for state in counted:
            del state["momentum_buffer"]

    def _update_with(
        self,
        group: dict[str, Any],
        params: list[Tensor],
        grads: list[Tensor],
        buffers: list[Tensor],
        first: bool,
    ) -> None:
        if params:
            _C._fused_sgd_(
                params,
                grads,
                buffers,
                float(group["lr"]),
                float(group["momentum"]),
                float(group["dampening"]),
                float(group["weight_decay"]),
                group["nesterov"],
                group["maximize"],
                first,
                group["differentiable"],
                self._scaling,
            )


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float | Tensor,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """Takes a step of SGD with buffers that the program keeps, in place.

    Args:
        params: the parameters.
        d_p_list: their gradients.
        momentum_buffer_list: for each its buffer; None, before its first step, is replaced.
        has_sparse_grad, foreach, fused: accepted for PyTorch's sake.
        grad_scale, found_inf: must be None.
        weight_decay, momentum, lr, dampening, nesterov, maximize: those of the class SGD.

    Raises:
        NotImplementedError: if grad_scale or found_inf is given.

    Example:
        >>> weight, buffers = torch.ones(2), [None]
        >>> torch.optim.sgd.sgd(
        ...     [weight], [torch.ones(2)], buffers, weight_decay=0, momentum=0.9, lr=0.5,
        ...     dampening=0, nesterov=False, maximize=False)
        >>> weight.tolist(), buffers[0].tolist()
        ([0.5, 0.5], [1.0, 1.0])
    """
    refuse_scaling("sgd", grad_scale, found_inf)
    starting = [momentum != 0 and buffer is None for buffer in momentum_buffer_list]
    for first in {*starting}:
        chosen = [i for i, starts in enumerate(starting) if starts is first]
        if first:
            for i in chosen:
                momentum_buffer_list[i] = rl.empty_like(params[i])
        _C._fused_sgd_(
            [params[i] for i in chosen],
            [d_p_list[i] for i in chosen],
            [momentum_buffer_list[i] for i in chosen] if momentum else [],
            float(lr),
            momentum,
            dampening,
            weight_decay,
            nesterov,
            maximize,
            first,
        )
