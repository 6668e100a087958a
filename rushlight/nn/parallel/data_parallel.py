"""DataParallel: a module that splits its batch over the GPUs of this process."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import chain
from typing import Any, Generic, TypeVar

import rushlight as rl
from rushlight import cuda
from rushlight.autograd.profiler import record_function
from rushlight.cuda._device import gpu_index
from rushlight.nn.modules.module import Module
from rushlight.nn.parallel.parallel_apply import parallel_apply
from rushlight.nn.parallel.replicate import replicate
from rushlight.nn.parallel.scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]

T = TypeVar("T", bound=Module)


def _warn_of_imbalance(gpus: Sequence[int]) -> None:
    properties = [cuda.get_device_properties(gpu) for gpu in gpus]
    for name in ("total_memory", "multi_processor_count"):
        sizes = [getattr(gpu, name) for gpu in properties]
        if min(sizes) < 0.75 * max(sizes):
            warnings.warn(
                "DataParallel: There is an imbalance between your GPUs. You may want to exclude "
                f"GPU {gpus[sizes.index(min(sizes))]} which has less than 75% of the memory or "
                f"cores of GPU {gpus[sizes.index(max(sizes))]}. You can do so by setting the "
                "device_ids argument, or by setting the CUDA_VISIBLE_DEVICES environment variable.",
                stacklevel=3,
            )
            return


def _check_place(module: Module, device: rl.device) -> None:
    for tensor in chain(module.parameters(), module.buffers()):
        if tensor.device != device:
            raise RuntimeError(
                "module must have its parameters and buffers on device "
                f"{device} (device_ids[0]) but found one of them on device: {tensor.device}. "
                f'Move it with module.to("{device}").'
            )


class DataParallel(Module, Generic[T]):
    """Calls a module on several GPUs at once, each with a part of the batch.

    In each call the module is copied to the GPUs, the tensors among the arguments are split along
    dim, and the results are joined; backward adds the gradients up in the module. What a forward
    assigns to attributes is lost with the copies; only on the first GPU parameters and buffers are
    those of the module, so that what is written into them in place, such as running means, stays.
    Without a GPU this calls the module.

    Args:
        module: with parameters and buffers on the first GPU.
        device_ids: the GPUs; all of them unless given.
        output_device: where results are; the first GPU unless given.
        dim: along which tensors are split and joined.

    Raises:
        RuntimeError: in a call, if a parameter or buffer is elsewhere.

    Example:
        >>> model = torch.nn.DataParallel(torch.nn.Linear(2, 3))
        >>> x = torch.ones(4, 2, device="cuda" if torch.cuda.is_available() else "cpu")
        >>> tuple(model.to(x.device)(x).shape)
        (4, 3)
        >>> list(model.state_dict())
        ['module.weight', 'module.bias']
    """

    module: T
    device_ids: list[int]

    def __init__(
        self,
        module: T,
        device_ids: Sequence[int | rl.device] | None = None,
        output_device: int | rl.device | None = None,
        dim: int = 0,
    ) -> None:
        super().__init__()
        self.module = module
        self.device_ids = []
        if not cuda.is_available():
            return
        chosen = range(cuda.device_count()) if device_ids is None else device_ids
        self.dim = dim
        self.device_ids = [gpu_index(device) for device in chosen]
        first = self.device_ids[0]
        self.output_device = first if output_device is None else gpu_index(output_device)
        self.src_device_obj = rl.device("cuda", first)
        _warn_of_imbalance(self.device_ids)
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        with record_function("DataParallel.forward"):
            if not self.device_ids:
                return self.module(*inputs, **kwargs)
            _check_place(self.module, self.src_device_obj)
            args_of, kwargs_of = self.scatter(inputs, kwargs, self.device_ids)
            if not args_of and not kwargs_of:  # a call without arguments is one of the first GPU
                args_of, kwargs_of = ((),), ({},)
            if len(self.device_ids) == 1:
                return self.module(*args_of[0], **kwargs_of[0])
            replicas = self.replicate(self.module, self.device_ids[: len(args_of)])
            outputs = self.parallel_apply(replicas, args_of, kwargs_of)
            return self.gather(outputs, self.output_device)

    def replicate(self, module: T, device_ids: Sequence[int | rl.device]) -> list[T]:
        """Returns a copy of the module for each GPU; a subclass may change how."""
        return replicate(module, device_ids, not rl.is_grad_enabled())

    def scatter(
        self,
        inputs: tuple[Any, ...],
        kwargs: dict[str, Any] | None,
        device_ids: Sequence[int | rl.device],
    ) -> Any:
        """Returns the arguments and keyword arguments of each GPU."""
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(
        self, replicas: Sequence[T], inputs: Sequence[Any], kwargs: Any
    ) -> list[Any]:
        """Returns what the copies return."""
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs: Any, output_device: int | rl.device) -> Any:
        """Returns the results of all copies as one."""
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[int | rl.device] | None = None,
    output_device: int | rl.device | None = None,
    dim: int = 0,
    module_kwargs: Any | None = None,
) -> Any:
    """Returns module(*inputs), computed on several GPUs; see DataParallel.

    Args:
        module: with parameters and buffers on the first GPU.
        inputs: a tuple of arguments, or the only one.
        device_ids: the GPUs; all of them unless given.
        output_device: where results are, -1 for the CPU; the first GPU unless given.
        dim: along which tensors are split and joined.
        module_kwargs: keyword arguments.

    Raises:
        RuntimeError: if there is no GPU, or a parameter or buffer is not on the first one.
    """
    if not isinstance(inputs, tuple):
        inputs = (inputs,) if inputs is not None else ()
    if not cuda.is_available():
        raise RuntimeError(
            "data_parallel: device type could not be determined. It needs a GPU; call the module."
        )
    chosen = range(cuda.device_count()) if device_ids is None else device_ids
    gpus = [gpu_index(device) for device in chosen]
    is_cpu = isinstance(output_device, int) and output_device == -1
    target = "cpu" if is_cpu else gpu_index(gpus[0] if output_device is None else output_device)
    _check_place(module, rl.device("cuda", gpus[0]))
    args_of, kwargs_of = scatter_kwargs(inputs, module_kwargs, gpus, dim)
    if not args_of and not kwargs_of:
        args_of, kwargs_of = ((),), ({},)
    if len(gpus) == 1:
        return module(*args_of[0], **kwargs_of[0])
    used = gpus[: len(args_of)]
    replicas = replicate(module, used, not rl.is_grad_enabled())
    return gather(parallel_apply(replicas, args_of, kwargs_of, used), target, dim)
