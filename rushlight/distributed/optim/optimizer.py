"""DistributedOptimizer: steps for parameters of several processes, after backward through calls."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from rushlight import Tensor
from rushlight.distributed import autograd, rpc
from rushlight.futures import wait_all
from rushlight.optim import Optimizer

__all__ = ["DistributedOptimizer"]


class _LocalOptimizer:
    """The part of a process, for the parameters that it has."""

    _lock = threading.Lock()  # gradients of one context at a time

    def __init__(
        self, kind: type[Optimizer], parameters: list[rpc.RRef], args: Any, kwargs: Any
    ) -> None:
        self._optimizer = kind([rref.local_value() for rref in parameters], *args, **kwargs)

    def step(self, context_id: int) -> None:
        grads = autograd.get_gradients(context_id)
        with self._lock:
            parameters: list[Tensor] = [
                parameter for group in self._optimizer.param_groups for parameter in group["params"]
            ]
            before = [parameter.grad for parameter in parameters]
            for parameter in parameters:
                parameter.grad = grads.get(parameter)
            try:
                self._optimizer.step()
            finally:
                for parameter, grad in zip(parameters, before, strict=True):
                    parameter.grad = grad


def _local_optimizer(*args: Any) -> rpc.RRef:
    return rpc.RRef(_LocalOptimizer(*args))


class DistributedOptimizer:
    """An optimizer in each process that has parameters, which makes steps for them there.

    Steps of several contexts at the same time come one after the other in each process.

    Args:
        optimizer_class: of rushlight.optim.
        params_rref: references to the parameters.
        *args, **kwargs: for optimizer_class, beside the parameters.

    Raises:
        Exception: what the optimizer of a process raised.

    Example:
        >>> from rushlight.distributed import autograd, rpc
        >>> from rushlight.distributed.optim import DistributedOptimizer
        >>> import tempfile
        >>> options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mktemp()}")
        >>> rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> w = torch.ones(2, requires_grad=True)
        >>> optimizer = DistributedOptimizer(torch.optim.SGD, [rpc.RRef(w)], lr=0.1)
        >>> with autograd.context() as number:
        ...     loss = rpc.rpc_sync("alone", torch.mul, args=(w, 3)).sum()
        ...     autograd.backward(number, [loss])
        ...     optimizer.step(number)
        >>> w
        tensor([0.7000, 0.7000], requires_grad=True)
        >>> rpc.shutdown()
    """

    def __init__(
        self,
        optimizer_class: type[Optimizer],
        params_rref: Sequence[rpc.RRef],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        by_owner: dict[rpc.WorkerInfo, list[rpc.RRef]] = {}
        for rref in params_rref:
            by_owner.setdefault(rref.owner(), []).append(rref)
        self._parts = wait_all(
            [
                rpc.rpc_async(owner, _local_optimizer, (optimizer_class, rrefs, args, kwargs))
                for owner, rrefs in by_owner.items()
            ]
        )

    def step(self, context_id: int) -> None:
        """Makes a step in all processes, with the gradients of a context.

        Raises:
            RuntimeError: if there is no such context in one of them.
        """
        wait_all([part.rpc_async().step(context_id) for part in self._parts])
