"""When a sharded module gathers its parameters, and when it lets them go: hooks around calls.

Before forward the whole parameters come, after it they go; when backward reaches the outputs they
come again, when it has left by the inputs they go. What is needed out of turn is gathered where
it is unpacked (Packed), so to let go early is never wrong, only slow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor
from rushlight.distributed.fsdp._param_group import Packed, ParamGroup, Reduction
from rushlight.distributed.fsdp._policies import MixedPrecisionPolicy
from rushlight.distributed.utils import cast_floating
from rushlight.nn import Module
from rushlight.utils._pytree import tree_leaves

__all__ = ["ShardState", "state_of", "states_in"]

_STATE = "_fsdp_state"


def state_of(module: Module) -> ShardState | None:
    """Returns the state of a module that was sharded itself; None for others."""
    return module.__dict__.get(_STATE)


def states_in(module: Module) -> Iterable[ShardState]:
    """Returns the states of a module and all below it."""
    found: dict[int, ShardState] = {}
    for part in module.modules():
        state = state_of(part)
        if state is not None:
            found[id(state)] = state
    return found.values()


class Context:
    """What the sharded modules of one tree have in common.

    Args:
        root: the state of the module that was called first.
    """

    def __init__(self, root: ShardState) -> None:
        found = (state for module in root.modules for state in states_in(module))
        self.states = list(dict.fromkeys(found))
        self.groups = [group for state in self.states for group in state.groups]
        self.depth = 0  # of calls
        self.packs = False  # whether pack sees what ops save
        self.order: list[ShardState] = []  # in which modules were called
        self.is_in_backward = False
        self.gathered: dict[ParamGroup, None] = {}  # whose whole parameters are there
        self.last_reduction: Reduction | None = None
        for state in self.states:
            state.context = self
            state.is_root = state is root
            for group in state.groups:
                group.context = self
                if group.whole is not None:
                    self.gathered[group] = None

    def enter(self, state: ShardState) -> None:
        """Begins a call. Whole parameters that ops save in the outermost one are packed."""
        if not self.depth:
            if state.is_root:
                self.order.clear()
                if self.is_in_backward and not _runs_backward():
                    self.end_backward()  # of one that raised
            self.packs = _decides_what_is_saved()
            if self.packs:
                _C._push_saving_hooks(self.pack, _unpack)
            if rl.is_grad_enabled():
                for group in self.groups if state.is_root else state.groups:
                    group.tie()
        self.depth += 1

    def leave(self) -> None:
        """Ends a call."""
        self.depth -= 1
        if not self.depth:
            if self.packs:
                _C._pop_saving_hooks()
            for group in self.groups:
                group.token = None

    def pack(self, tensor: Tensor) -> Any:
        """Keeps where a tensor lies, if it is a whole parameter or a view of one."""
        address = tensor.data_ptr()
        for group in self.gathered:
            if group.start <= address < group.end:
                return group.packed(tensor)
        return tensor

    def begin_backward(self) -> None:
        if not self.is_in_backward:
            self.is_in_backward = True
            _C._queue_callback(self.end_backward)

    def end_backward(self) -> None:
        self.is_in_backward = False
        self.last_reduction = None
        for state in self.states:
            state.end_backward()
        for group in self.groups:
            group.reductions.clear()  # of a backward that raised


def _unpack(packed: Any) -> Tensor:
    return packed.unpack() if isinstance(packed, Packed) else packed


def _decides_what_is_saved() -> bool:
    """Whether no checkpoint, or other hook on saved tensors, is at work."""
    try:
        before = _C._refuse_saving_hooks("")
    except RuntimeError:
        return False
    _C._refuse_saving_hooks(before)
    return before is None


def _runs_backward() -> bool:
    try:
        _C._queue_callback(lambda: None)
    except RuntimeError:
        return False
    return True


class ShardState:
    """The groups of parameters of one sharded module, or of several that are called in a row.

    Args:
        modules: to which the parameters belong, and with whose calls they come and go.
        groups: the parameters.
        precision: for inputs and outputs.
        reshards: whether whole parameters go after forward; None for all but the root's.
    """

    def __init__(
        self,
        modules: list[Module],
        groups: list[ParamGroup],
        precision: MixedPrecisionPolicy,
        reshards: bool | None,
    ) -> None:
        self.modules, self.groups, self.precision = modules, groups, precision
        self.reshards_after_forward = reshards
        self.reshards_after_backward = True
        self.context: Any = None
        self.is_root = True
        self.is_unsharded = False  # unshard was called
        self.in_backward: set[int] = set()  # calls for whose backward whole parameters are there
        self.number = 0  # of the last call
        self.forward_prefetch: list[ShardState] = []
        self.backward_prefetch: list[ShardState] | None = None  # None: the one called before
        self.calls = 0  # that have begun and not ended
        self.called: set[Module] = set()
        self.comes_in_backward = True
        self.casts_root_inputs: bool | None = None  # None: as others do
        for module in modules:
            module.__dict__[_STATE] = self
            module.register_forward_pre_hook(self.before_forward, prepend=True, with_kwargs=True)
            module.register_forward_hook(self.after_forward, always_call=True)

    def join(self) -> Any:
        """Returns the context; the first module that is called is the root of one."""
        if self.context is None:
            Context(self)
        return self.context

    def params(self) -> Iterable[Any]:
        """Returns the sharded parameters."""
        return (param.current for group in self.groups for param in group.params)

    # Forward

    def before_forward(self, module: Module, args: Any, kwargs: Any) -> Any:
        self.join().enter(self)
        self.calls += 1
        self.number += 1
        for group in self.groups:
            group.forget_if_changed()
            group.expose()
        for other in self.forward_prefetch:
            other.begin_gather()
        casts = self.precision.cast_forward_inputs
        if self.is_root and self.casts_root_inputs is not None:
            casts = self.casts_root_inputs
        if casts:
            args, kwargs = cast_floating((args, kwargs), self.precision.param_dtype)
        self.watch((args, kwargs), self.leaves_by_input)
        return args, kwargs

    def after_forward(self, module: Module, args: Any, output: Any) -> Any:
        if not self.calls:
            return None  # it was an error before ours that ended the call
        self.calls -= 1
        for group in self.groups:
            group.conceal()
        self.called.add(module)
        is_done = len(self.called) == len(self.modules)
        if is_done and not self.calls:
            self.called.clear()
            self.context.order.append(self)
            if not rl.is_grad_enabled() or self.reshards_after_forward_now:
                self.forget()
        self.context.leave()
        output = cast_floating(output, self.precision.output_dtype)
        self.watch(output, self.comes_by_output)
        return output

    def watch(self, tree: Any, function: Callable[[int], None]) -> None:
        """Calls a function with the number of this call when the gradient of a tensor is there."""
        if rl.is_grad_enabled():
            number = self.number
            for leaf in tree_leaves(tree):
                # Leaves would keep the hooks for good.
                if isinstance(leaf, Tensor) and leaf.grad_fn is not None:
                    leaf.register_hook(lambda _: function(number))

    @property
    def reshards_after_forward_now(self) -> bool:
        wanted = self.reshards_after_forward
        return not self.is_root if wanted is None else wanted

    # Backward

    def comes_by_output(self, number: int) -> None:
        """When backward reaches an output: brings the whole parameters, and begins with others."""
        self.context.begin_backward()
        if not self.comes_in_backward or number in self.in_backward:
            return
        if not self.in_backward:
            with rl.enable_grad():  # a checkpoint may compute with them
                for group in self.groups:
                    group.expose()
        self.in_backward.add(number)
        others = self.backward_prefetch
        if others is None:
            order = self.context.order
            at = order.index(self) if self in order else 0
            others = order[at - 1 : at] if at else []
        for other in others:
            other.begin_gather()

    def leaves_by_input(self, number: int) -> None:
        """When backward has the gradient of an input: lets the whole parameters go."""
        if number in self.in_backward:
            self.in_backward.discard(number)
            if not self.in_backward:
                for group in self.groups:
                    group.conceal()
        self.after_backward()

    def after_backward(self) -> None:
        """Lets the whole parameters go that backward brought, unless a call still needs them."""
        if self.reshards_after_backward and not self.calls:
            self.forget()

    def end_backward(self) -> None:
        """Lets all whole parameters go that backward brought."""
        if self.in_backward:
            self.in_backward.clear()
            for group in self.groups:
                group.conceal()
        self.after_backward()

    # By hand

    def begin_gather(self) -> None:
        for group in self.groups:
            group.begin_gather()

    def forget(self) -> None:
        """Lets go of memory that nobody asked to keep."""
        if not self.is_unsharded and not self.in_backward:
            for group in self.groups:
                group.forget()

    def unshard(self) -> None:
        """Puts whole parameters into the modules until reshard."""
        if not self.is_unsharded:
            self.join()
            self.is_unsharded = True
            for group in self.groups:
                group.forget_if_changed()
                group.expose()

    def reshard(self) -> None:
        """Puts the sharded parameters back and lets the memory of the whole ones go."""
        if self.is_unsharded:
            self.is_unsharded = False
            for group in self.groups:
                group.conceal()
        self.forget()
