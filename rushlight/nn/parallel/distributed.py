"""DistributedDataParallel: a module whose gradients are averaged over processes.

Owns the module's side: what is made equal when, no_sync, pickling. _reducer.py owns what happens in
backward, _uneven_inputs.py what processes do that are out of batches.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import rushlight as rl
from rushlight import Tensor
from rushlight import distributed as dist
from rushlight.autograd.profiler import record_function
from rushlight.distributed import GradBucket, utils
from rushlight.distributed.algorithms.ddp_comm_hooks.default_hooks import _compress_hook
from rushlight.distributed.algorithms.join import Join, Joinable, JoinHook
from rushlight.distributed.grad_bucket import check_hook
from rushlight.distributed.groups import default_group
from rushlight.func import functional_call
from rushlight.futures import Future
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.sparse import Embedding, EmbeddingBag
from rushlight.nn.parallel._reducer import DelayedReduction, Reducer
from rushlight.nn.parallel._uneven_inputs import StandIn, anyone_averages, last_rank
from rushlight.nn.parameter import UninitializedBuffer, UninitializedParameter
from rushlight.utils._pytree import tree_leaves, tree_map

__all__ = ["DistributedDataParallel"]

T = TypeVar("T", bound=Module)

_MEGABYTE = 1 << 20
_FIRST_BUCKET = 1.0  # megabytes: small, so that the first collective begins early
_OTHER_BUCKETS = 25.0
_IGNORED = "_ddp_params_and_buffers_to_ignore"  # an attribute of modules, as programs set it


@dataclasses.dataclass
class _MixedPrecision:
    """The dtypes for DistributedDataParallel(mixed_precision=...); None keeps them."""

    param_dtype: rl.dtype | None = None  # of parameters and inputs in forward and backward
    reduce_dtype: rl.dtype | None = None  # in which gradients are averaged
    buffer_dtype: rl.dtype | None = None  # of buffers, from the beginning
    cast_forward_inputs: bool = True


def _tensors_in(value: Any) -> Iterator[Tensor]:
    for leaf in tree_leaves(value):
        if isinstance(leaf, Tensor):
            yield leaf
        elif dataclasses.is_dataclass(leaf) and not isinstance(leaf, type):
            for part in dataclasses.fields(leaf):
                yield from _tensors_in(getattr(leaf, part.name))


class DistributedDataParallel(Module, Joinable, Generic[T]):
    """Calls a module in each of several processes, and averages its gradients over them.

    Every process has a copy of the module and calls it with its own part of the batch. Parameters
    and buffers begin as those of process 0. In backward each gradient becomes the mean over the
    processes, so the copies stay equal if all take the same steps; the means of some gradients
    are computed while backward goes on to others (Li et al. 2020). docs/data_parallel.md says more.

    Args:
        module: the same in all processes, with parameters that require grad.
        device_ids: the GPU of the module, as the only element; None for a module on the CPU.
        output_device: accepted for PyTorch's sake; results are where the module computes them.
        dim: accepted for PyTorch's sake; nothing is split.
        broadcast_buffers: older than forward_sync_buffers; False also leaves buffers out of
            init_sync.
        init_sync: whether to compare the modules and to make parameters and buffers equal.
        process_group: the processes; all of them unless given.
        bucket_cap_mb: megabytes of gradients that are averaged at once; 25 unless given.
        find_unused_parameters: finds out in each backward which parameters it leaves out, and does
            not wait for their gradients. It costs another small collective.
        check_reduction: no effect.
        gradient_as_bucket_view: gradients are views of the memory in which they are averaged, which
            saves memory and a copy.
        static_graph: promises that each iteration uses the same parameters equally often. They
            may then be left out, or used in several reentrant backward passes. The gradients of the
            first backward are averaged when it is done.
        delay_all_reduce_named_params: (name, parameter) pairs that are averaged by themselves, when
            the gradient of param_to_hook_all_reduce has arrived.
        param_to_hook_all_reduce: see there.
        mixed_precision: dtypes for forward and for averaging, as _MixedPrecision; autocast is the
            usual way.
        device_mesh: a mesh of one dim, in place of process_group.
        skip_all_reduce_unused_params: with find_unused_parameters, promises that all processes
            leave the same parameters out, so that nothing about them is sent.
        bucket_cap_mb_list: megabytes of each bucket, the last one for all others, in place of
            bucket_cap_mb.
        batched_grad_copy: no effect; gradients are always copied together.
        forward_sync_buffers: whether forward first overwrites buffers by those of process 0; True
            unless given.

    Raises:
        RuntimeError: if no parameter requires grad; in every process, if the modules differ; in
            forward, if a parameter got no gradient in the backward before.
        ValueError: if device_ids do not fit the module.

    Example:
        >>> import rushlight.distributed as dist
        >>> dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)
        >>> model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
        >>> model(torch.ones(3, 2)).sum().backward()
        >>> model.module.weight.grad
        tensor([[3., 3.]])
        >>> dist.destroy_process_group()
    """

    module: T
    reducer: Reducer
    _divide_by_initial_world_size = True

    def __init__(
        self,
        module: T,
        device_ids: Sequence[int | rl.device] | None = None,
        output_device: int | rl.device | None = None,
        dim: int = 0,
        broadcast_buffers: bool | None = None,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
        delay_all_reduce_named_params: Iterable[tuple[str, Tensor]] | None = None,
        param_to_hook_all_reduce: Tensor | None = None,
        mixed_precision: _MixedPrecision | None = None,
        device_mesh: Any = None,
        skip_all_reduce_unused_params: bool = False,
        bucket_cap_mb_list: list[int] | None = None,
        batched_grad_copy: bool = False,
        forward_sync_buffers: bool | None = None,
    ) -> None:
        super().__init__()
        Joinable.__init__(self)
        if process_group is not None and device_mesh is not None:
            raise RuntimeError("Cannot specify both process_group and device_mesh arguments.")
        if (delay_all_reduce_named_params is None) != (param_to_hook_all_reduce is None):
            raise ValueError(
                "DistributedDataParallel: delay_all_reduce_named_params and "
                "param_to_hook_all_reduce need each other. Pass both or neither."
            )
        if device_mesh is not None:
            process_group = device_mesh.get_group(mesh_dim=0)
        self.process_group: Any = process_group or default_group()
        self.device_mesh = device_mesh
        self.module = module
        self.dim = dim
        self.output_device = output_device
        self.broadcast_buffers = broadcast_buffers is not False
        if forward_sync_buffers is not None:
            self.broadcast_buffers = forward_sync_buffers
        self.find_unused_parameters = find_unused_parameters
        self.gradient_as_bucket_view = gradient_as_bucket_view
        self.static_graph = static_graph
        self.skip_all_reduce_unused_params = skip_all_reduce_unused_params
        self.mixed_precision = mixed_precision
        cap = _OTHER_BUCKETS if bucket_cap_mb is None else bucket_cap_mb
        self._bucket_caps = bucket_cap_mb_list or [min(_FIRST_BUCKET, cap), cap]
        self.require_backward_grad_sync = True
        self.require_forward_param_sync = True

        self._delayed = list(delay_all_reduce_named_params or ())
        self._delayed_until = param_to_hook_all_reduce
        self.parameters_to_ignore = {
            *getattr(module, _IGNORED, ()),
            *(name for name, _ in self._delayed),
        }
        named = [*self._averaged_parameters(), *self._delayed]
        if not named:
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameters "
                "that require a gradient."
            )
        names, params = zip(*named, strict=True)
        self.device = _device_of(params)
        self.device_type = self.device.type
        self.device_ids = self._check_device_ids(device_ids, params)
        if mixed_precision is not None:
            utils.cast_buffers(module, mixed_precision.buffer_dtype)
        if init_sync:
            utils._verify_param_shape_across_processes(self.process_group, params, names)
            utils._sync_module_states(
                module,
                self.process_group,
                params_and_buffers_to_ignore=self.parameters_to_ignore,
                broadcast_buffers=broadcast_buffers is not False,
            )
            utils._sync_params_and_buffers(self.process_group, [p for _, p in self._delayed])
        self._build()

    # Construction

    def _averaged_parameters(self) -> list[tuple[str, Tensor]]:
        """The parameters that buckets are made for, with their names."""
        for name, tensor in [*self.module.named_parameters(), *self.module.named_buffers()]:
            if isinstance(tensor, UninitializedParameter | UninitializedBuffer):
                raise RuntimeError(
                    "Modules with uninitialized parameters can't be used with "
                    f"`DistributedDataParallel`: {name} has no shape yet. Run a dummy forward pass "
                    "to correctly initialize the modules."
                )
        return [
            (name, param)
            for name, param in self.module.named_parameters()
            if param.requires_grad and name not in self.parameters_to_ignore
        ]

    def _check_device_ids(
        self, device_ids: Sequence[Any] | None, params: Sequence[Tensor]
    ) -> list[rl.device] | None:
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        if not device_ids and self.output_device is None:
            return None
        devices = sorted({str(param.device) for param in params})
        if not device_ids or self.device_type == "cpu" or len(devices) > 1:
            raise ValueError(
                "DistributedDataParallel device_ids and output_device arguments only work with "
                f"single-device GPU modules, but got device_ids {device_ids}, output_device "
                f"{self.output_device}, and module parameters {devices}. Leave them out."
            )
        first = device_ids[0]
        return [rl.device("cuda", first) if isinstance(first, int) else rl.device(first)]

    def _build(self) -> None:
        """Makes what cannot be pickled: buckets, and hooks of parameters."""
        named = self._averaged_parameters()
        sparse = {
            f"{name}.weight" if name else "weight"
            for name, part in self.module.named_modules()
            if isinstance(part, Embedding | EmbeddingBag) and part.sparse
        }
        self.reducer = Reducer(
            [param for _, param in named],
            [name for name, _ in named],
            [name in sparse for name, _ in named],
            self.process_group,
            [int(cap * _MEGABYTE) for cap in self._bucket_caps],
            find_unused=self.find_unused_parameters,
            skips_unused=self.skip_all_reduce_unused_params,
            static_graph=self.static_graph,
            as_views=self.gradient_as_bucket_view,
        )
        if self.mixed_precision is not None and self.mixed_precision.reduce_dtype is not None:
            hook = functools.partial(_compress_hook, self.mixed_precision.reduce_dtype)
            self.register_comm_hook(self.process_group, hook)
        if self._delayed_until is not None:
            DelayedReduction([p for _, p in self._delayed], self._delayed_until, self.reducer)
        ignored = self.parameters_to_ignore
        buffers = [b for name, b in self.module.named_buffers() if name not in ignored]
        self._buffer_parcels = utils.in_parcels(buffers)

    def __getstate__(self) -> dict[str, Any]:
        if self.process_group is not default_group():
            raise RuntimeError(
                "DDP Pickling/Unpickling are only supported when using DDP with the default "
                "process group. That is, when you have called init_process_group and have not "
                "passed process_group argument to DDP constructor."
            )
        left_out = ("process_group", "reducer", "_buffer_parcels")
        return {key: value for key, value in self.__dict__.items() if key not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.process_group = default_group()
        self.require_forward_param_sync = self.require_backward_grad_sync = True
        self._build()

    # Calls

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        with record_function("DistributedDataParallel.forward"):
            self._before_forward()
            outputs = self._call_module(inputs, kwargs)
            self._after_forward(outputs)
            return outputs

    def _averages(self) -> bool:
        return self.require_backward_grad_sync and rl.is_grad_enabled()

    def _before_forward(self) -> None:
        averages = self._averages()
        if averages:
            self.reducer.check_finished()
        self.reducer.divisor = None
        if self._join_config.enable:
            self._join_others(averages)
        if averages:
            self.reducer.rearrange_if_due()
        if self.will_sync_module_buffers():
            self._sync_buffers(True)

    def _after_forward(self, outputs: Any) -> None:
        self.require_forward_param_sync = averages = self._averages()
        if averages:
            self.reducer.prepare(outputs, _tensors_in)
        else:
            self.reducer.expects = False

    def _call_module(self, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self.device_ids:
            device = self.device_ids[0]

            def move(value: Any) -> Any:
                return value.to(device) if isinstance(value, Tensor) else value

            inputs, kwargs = tree_map(move, inputs), tree_map(move, kwargs)
        precision = self.mixed_precision
        if precision is None or precision.param_dtype is None:
            return self.module(*inputs, **kwargs)
        if precision.cast_forward_inputs:
            inputs, kwargs = utils.cast_floating((inputs, kwargs), precision.param_dtype)
        params = utils.cast_floating(dict(self.module.named_parameters()), precision.param_dtype)
        return functional_call(self.module, params, inputs, kwargs)

    @contextlib.contextmanager
    def no_sync(self) -> Generator[None, None, None]:
        """Leaves gradients as they are in each process, in the scope of a `with`.

        They add up in .grad; the first backward after a forward outside averages the sums. Forward
        must be inside of the scope, too.
        """
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def _expect_backward(self, outputs: Any) -> None:
        """Averages the gradients in the next backward, though forward was in no_sync.

        Args:
            outputs: of the forward.
        """
        self.reducer.prepare_for_backward(list(_tensors_in(outputs)))

    def will_sync_module_buffers(self) -> bool:
        """Whether the next forward begins by overwriting buffers."""
        wanted = self.require_forward_param_sync and self.broadcast_buffers
        return wanted and bool(self._buffer_parcels)

    def _sync_buffers(self, is_active: bool) -> None:
        source = last_rank(self, is_active) if self._join_config.enable else 0
        for parcel in self._buffer_parcels:
            parcel.broadcast(self.process_group, source)

    # Hooks

    def register_comm_hook(self, state: object, hook: Callable[[Any, GradBucket], Future]) -> None:
        """Averages gradients by a function in place of an all_reduce.

        Args:
            state: handed to it.
            hook: called as hook(state, bucket) when the gradients of a bucket are there; returns
                a Future of the averages, one after another as in bucket.buffer().

        Raises:
            TypeError: if hook cannot be called.
            ValueError: if it is annotated as another function.
            RuntimeError: if there is a hook already.
        """
        check_hook(hook)
        if self.reducer.comm_hook is not None:
            raise RuntimeError(
                "register_comm_hook or register_builtin_comm_hook can only be called once."
            )
        self.reducer.comm_hook, self.reducer.hook_state = hook, state

    @staticmethod
    def _set_params_and_buffers_to_ignore_for_model(
        module: Module, params_and_buffers_to_ignore: Iterable[str]
    ) -> None:
        """Leaves parameters and buffers out, by their names, when the module is wrapped."""
        module.__dict__[_IGNORED] = list(params_and_buffers_to_ignore)

    def _get_ddp_logging_data(self) -> dict[str, Any]:
        """What loggers record of the settings."""
        return {
            "world_size": dist.get_world_size(self.process_group),
            "rank": dist.get_rank(self.process_group),
            "module_name": type(self.module).__name__,
            "backend_name": dist.get_backend(self.process_group),
            "find_unused_parameters": int(self.find_unused_parameters),
            "can_set_static_graph": False,
        }

    def _set_static_graph(self) -> None:
        """Sets static_graph after construction, before the first forward."""
        if self.static_graph:
            warnings.warn(
                "You've set static_graph to be True, no need to call _set_static_graph again.",
                stacklevel=2,
            )
            return
        self.static_graph = True
        self._build()

    # Uneven inputs

    @property
    def join_device(self) -> rl.device:
        return self.device

    @property
    def join_process_group(self) -> Any:
        return self.process_group

    def join(
        self,
        divide_by_initial_world_size: bool = True,
        enable: bool = True,
        throw_on_early_termination: bool = False,
    ) -> Join:
        """Returns a scope in which processes may have different numbers of batches.

        A process that is out of batches takes part with zeros in what the others average. In the
        end all have the model of one that had the most.

        Args:
            divide_by_initial_world_size: divide sums of gradients by the number of processes; else
                by that of those which still have batches.
            enable: False if all processes have the same number of batches: then this does nothing.
            throw_on_early_termination: raise in all processes as soon as one is out of batches.

        Raises:
            RuntimeError: in forward, with throw_on_early_termination.
        """
        options = {"divide_by_initial_world_size": divide_by_initial_world_size}
        return Join([self], enable, throw_on_early_termination, **options)

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """Returns what to do when this process is out of batches; see join for kwargs."""
        self._divide_by_initial_world_size = kwargs.get("divide_by_initial_world_size", True)
        return StandIn(self)

    def _join_others(self, averages: bool) -> None:
        """Tells processes that are out of batches what comes."""
        work = Join.notify_join_context(self)
        if work is not None:
            work.wait()
            if not self._divide_by_initial_world_size:
                self.reducer.divisor = int(work.result()[0].item())
        anyone_averages(self, averages)


def _device_of(params: Sequence[Tensor]) -> rl.device:
    types = {param.device.type for param in params}
    if len(types) > 1:
        raise ValueError(
            "DistributedDataParallel's input module must be on the same type of devices, but input "
            f"module parameters locate in {types}."
        )
    return params[0].device
