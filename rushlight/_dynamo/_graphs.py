"""Programs as graphs, for the back ends of torch.compile that take them.

Invariant: a graph only runs where the program would do the same: for arguments like those of its
recording, with the same values in globals, closures and attributes. A program that has no graph
runs as it is: one that decides by elements of tensors, or that changes more than tensors.
"""

from __future__ import annotations

import copy
import random
import sys
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import rushlight as rl
from rushlight import _C, Tensor, nn
from rushlight._dynamo import config
from rushlight._dynamo._state import State, UnseenError, describe
from rushlight._dynamo.backends.registry import BackEnd
from rushlight._dynamo.exc import BackendCompilerFailed, TorchDynamoException, Unsupported
from rushlight.compiler import is_recording
from rushlight.export._program import record_program
from rushlight.export._recording import RefusedError
from rushlight.fx._code import CodeGen
from rushlight.utils._pytree import tree_flatten, tree_unflatten

if TYPE_CHECKING:
    from rushlight.export._program import Program
    from rushlight.fx import GraphModule

_refuses_functions = ContextVar("refuses_functions", default=False)

_MOST_REFUSALS = 8  # recordings in vain, after which a program runs as it is for good


class _ReadError(RefusedError):
    """A program that decides by elements of tensors."""


class Graphs:
    """A function or module that runs by what a back end makes of its graphs.

    Args:
        function: what is compiled.
        back_end: gets each graph, a GraphModule whose arguments are the tensors among the
            function's, one after the other, and whose result is a flat tuple.
        fullgraph: whether a program that decides by elements of tensors raises.
    """

    def __init__(
        self, function: Callable[..., Any], back_end: BackEnd, fullgraph: bool = False
    ) -> None:
        self._function = function
        self._back_end = back_end
        self._fullgraph = fullgraph
        self._compiled: dict[Any, Callable[[list[Tensor]], Any] | None] = {}
        self._refusals = 0

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree_flatten((args, kwargs))
        tensors = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        compiled = None
        if self._refusals < _MOST_REFUSALS and _is_plain(tensors):
            try:
                state = self._state(leaves)
            except UnseenError:
                self._refusals += 1
            else:
                key = (repr(spec), *map(describe, tensors), *_sharing(tensors), state.key, _modes())
                if key not in self._compiled:
                    self._compiled[key] = self._compile(state, args, kwargs)
                compiled = self._compiled[key]
        return self._function(*args, **kwargs) if compiled is None else compiled(tensors)

    def record(self, state: State, args: Sequence[Any], kwargs: dict[str, Any]) -> Program:
        """Runs the program to see what it does, and puts all that it changed back.

        Raises:
            RefusedError: if it has no graph.
        """
        restore, restore_random, modes = state.keep(), _keep_random(), _modes()
        refusing = _refuses_functions.set(self._loses_backward(args, kwargs))
        try:
            program = record_program(
                self._function, args, kwargs, _refuse_read, is_checked=False, is_live=True
            )
        finally:
            _refuses_functions.reset(refusing)
            is_changed = restore()
            is_random = restore_random()
        if is_changed or _modes() != modes:
            raise RefusedError("The program changes variables, attributes, containers or modes.")
        if is_random:
            raise RefusedError("The program draws random numbers of Python or NumPy.")
        if any(map(state.has_gradient, program.tensors.values())):
            raise RefusedError("The program reads the gradient of a tensor.")
        return program

    def explain(self, args: Sequence[Any], kwargs: dict[str, Any]) -> GraphModule:
        """Returns the graph for some arguments; raises RefusedError if there is none."""
        try:
            state = self._state(tree_flatten((args, kwargs))[0])
        except UnseenError as error:
            raise RefusedError(str(error)) from error
        return _module_of(self.record(state, args, kwargs))

    def _state(self, leaves: list[Any]) -> State:
        return State(self._function, *(leaf for leaf in leaves if not isinstance(leaf, Tensor)))

    def _compile(
        self, state: State, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Callable[[list[Tensor]], Any] | None:
        """What to call with the tensors; None if there is no graph."""
        try:
            program = self.record(state, args, kwargs)
        except Exception as error:  # a program that fails does so when it runs as it is
            self._refusals += 1
            if self._fullgraph and isinstance(error, _ReadError):
                raise Unsupported(f"torch.compile with fullgraph=True: {error}") from error
            return None
        out_spec = program.calling.out_spec
        inputs = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor)]
        try:
            compiled = self._back_end(_module_of(program), inputs)
        except TorchDynamoException:
            raise
        except Exception as error:
            raise BackendCompilerFailed(self._back_end, error) from error

        def run(tensors: list[Tensor]) -> Any:
            with rl.set_grad_enabled(rl.is_grad_enabled()):  # an error may leave another mode
                return tree_unflatten(list(compiled(*tensors)), out_spec)

        return run

    def _loses_backward(self, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
        """Whether a graph would be differentiated in another way than an autograd.Function is."""
        params = self._function.parameters() if isinstance(self._function, nn.Module) else ()
        leaves = (*tree_flatten((args, kwargs))[0], *params)
        return rl.is_grad_enabled() and any(
            isinstance(leaf, Tensor) and leaf.requires_grad for leaf in leaves
        )


def _module_of(program: Program) -> GraphModule:
    module = program.module()
    graph = copy.deepcopy(program.graph)
    graph.set_codegen(CodeGen())
    module.graph = graph
    return module


def _is_plain(tensors: list[Tensor]) -> bool:
    """Whether ops on these tensors can be recorded here: nothing else watches or changes them."""
    if is_recording.get() or rl.is_inference_mode_enabled():
        return False
    if _C._function_modes() or _C._dispatch_modes():
        return False
    return all(
        type(tensor) in (Tensor, nn.Parameter) and _C._lift_of(tensor) is None for tensor in tensors
    )


def _sharing(tensors: list[Tensor]) -> list[int]:
    """For each tensor the first place where it is passed."""
    places: dict[int, int] = {}
    return [places.setdefault(id(tensor), place) for place, tensor in enumerate(tensors)]


def _modes() -> tuple[Any, ...]:
    """What a recording depends on besides arguments and what a program can reach."""
    autocast = rl.get_autocast_dtype("cpu") if rl.is_autocast_enabled("cpu") else None
    is_deterministic = rl.are_deterministic_algorithms_enabled()
    return autocast, rl.is_grad_enabled(), rl.get_default_dtype(), is_deterministic


def _keep_random() -> Callable[[], bool]:
    """Returns a function that puts random numbers back, and says if Python's or NumPy's were drawn.

    Those of the framework are drawn by the graph.
    """
    ours, pythons = rl.get_rng_state(), random.getstate()
    numpy: Any = sys.modules.get("numpy.random")
    numpys = numpy.get_state() if numpy else ()

    def restore() -> bool:
        rl.set_rng_state(ours)
        now = numpy.get_state() if numpy else ()
        is_drawn = random.getstate() != pythons or repr(now) != repr(numpys)
        random.setstate(pythons)
        if numpy:
            numpy.set_state(numpys)
        return is_drawn

    return restore


def _refuse_function(cls: type[Any]) -> None:
    if _refuses_functions.get():
        raise RefusedError(
            f"{cls.__name__} is an autograd.Function, whose backward a graph of ops does not have. "
            "Use the back end inductor, or let the program run without a graph."
        )


_C._watch_functions(_refuse_function)


def _refuse_read(how: str, site: str) -> None:
    # What PyTorch's compiler takes into a graph, too, is no error.
    is_error = how not in ("numpy", "__array__") and not any(
        getattr(config, name, False)
        for name in ("capture_scalar_outputs", "capture_dynamic_output_shape_ops")
    )
    raise (_ReadError if is_error else RefusedError)(
        f"{site} reads elements of a tensor that depends on the inputs, by {how}. A graph has no "
        "place for that. Use ops such as torch.where, or let the program run without a graph."
    )
