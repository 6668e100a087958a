"""Recording: a program is run once, and every op that it calls becomes a step of a graph.

Ops are seen as the functions that a program calls (rushlight.overrides.TorchFunctionMode): what nn
and nn.functional write in Python is recorded as the ops inside. Control flow has been followed when
the graph is there. Invariant: a tensor that the program computed from its inputs never becomes a
constant; where the program leaves the ops, for a number or an array, on_read is told.
"""

from __future__ import annotations

import builtins
import contextlib
import itertools
import operator
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import rushlight as rl
from rushlight import _C, Tensor, nn
from rushlight._overridable import function_of
from rushlight._quantized import QuantizedTensor
from rushlight._quantized_ops import run as run_quantized
from rushlight._storage import memory_of
from rushlight.compiler import is_recording
from rushlight.fx._wrapping import Patches
from rushlight.fx.graph import Graph
from rushlight.fx.node import CONSTANTS, Node, map_aggregate
from rushlight.fx.passes.shape_prop import _extract_tensor_metadata
from rushlight.fx.passes.tools_common import torch_name
from rushlight.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from rushlight.overrides import TorchFunctionMode
from rushlight.utils.hooks import RemovableHandle

__all__ = ["Recording", "RefusedError", "record"]

_PACKAGE = str(Path(__file__).parents[1])
_MODELS = str(Path(_PACKAGE) / "vision")  # its lines are as telling as a program's own

# By these a program leaves the ops: what it does with the result cannot be recorded.
_READERS = (
    *("item", "tolist", "numpy", "__array__"),
    *("__bool__", "__int__", "__float__", "__index__", "__complex__"),
)
_CONSTANT = "_tensor_constant"  # how the paths of constants begin that no module has
_SIZED_BY_ELEMENTS = {"argwhere", "masked_select", "nonzero", "_unique", "_unique_consecutive"}
_READING_OPS = {"allclose", "equal", "is_nonzero"}
_HOOKS = ("register_hook", "register_post_accumulate_grad_hook", "retain_grad")

_SEEDING = ("manual_seed", "seed", "set_rng_state")

_lock = threading.RLock()  # the methods of Tensor are replaced while a program is recorded


class RefusedError(RuntimeError):
    """A program that does what no recording can hold."""


class Recording:
    """A program as its ops.

    Attributes:
        graph: placeholders, one for each input; get_attr for parameters, buffers and constants;
            call_function for ops, and for functions with an attribute is_mark, which only mark a
            place; the output is a flat tuple. Nodes note in meta the
            "tensor_meta" and the "storage" of the result, the "site" that called them, which nodes'
            tensors they have "written", whether they are "sized_by_elements", and, unless the
            recording is live, the "nn_module_stack": the path and the class of each module whose
            forward ran, the innermost last, by the path, with @1 and so on in further calls of it.
        tensors: what the get_attr nodes mean, by path.
    """

    def __init__(self) -> None:
        self.graph = Graph()
        self.tensors: dict[str, Tensor] = {}


def record(
    program: Callable[[], Sequence[Any]],
    inputs: Sequence[tuple[str, Tensor]],
    module: nn.Module,
    on_read: Callable[[str, str], None],
    is_live: bool = False,
) -> Recording:
    """Runs a program and returns what it did.

    Args:
        program: runs on the inputs and returns flat results.
        inputs: names and tensors of what may differ between runs.
        module: whose parameters and buffers the graph calls by their paths. Buffers that the
            program changes, as batch norm does, are as before when this returns.
        on_read: is told how, and on which line, the program reads numbers that depend on inputs.
        is_live: whether the graph goes on in the place of the program: it uses the tensors from
            outside themselves, and turns gradients on and off as the program does.
    """
    recorder = _Recorder(inputs, module, on_read, is_live)
    with _lock, contextlib.ExitStack() as stack:
        stack.enter_context(_unchanged_buffers(module))
        patches = Patches(stack)
        for name in _READERS:
            if hasattr(Tensor, name):
                patches.set_attribute(Tensor, name, recorder.reader(name))
        patches.set_attribute(Tensor, "new_tensor", recorder.maker(Tensor.new_tensor))
        patches.set_attribute(rl, "tensor", recorder.maker(rl.tensor))
        stack.callback(is_recording.reset, is_recording.set(True))
        stack.enter_context(rl.inference_mode(False))
        stack.enter_context(rl.set_grad_enabled(is_live and rl.is_grad_enabled()))
        if is_live:
            stack.callback(recorder.restore)
            patches.set_attribute(builtins, "print", _refused("prints"))
            patches.set_attribute(_C, "_run_backward", _refused("computes gradients"))
            for name in _HOOKS:
                patches.set_attribute(Tensor, name, _refused(f"calls {name}"))
            for name, home in itertools.product(_SEEDING, (rl, rl.random)):
                patches.set_attribute(home, name, _refused("sets the state of random numbers"))
        else:
            for handle in recorder.follow_modules():
                stack.callback(handle.remove)
        with recorder:
            results = program()
        return recorder.finish(results)


def _refused(what: str) -> Callable[..., None]:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise RefusedError(f"{_site()} {what}, which is no step of a graph.")

    return refuse


@contextlib.contextmanager
def _unchanged_buffers(module: nn.Module) -> Iterator[None]:
    """Gives the buffers of a module their values back at the end."""
    before = [(path, buffer, buffer.clone()) for path, buffer in module.named_buffers()]
    try:
        yield
    finally:
        with rl.no_grad():
            for path, buffer, value in before:
                owner, _, name = path.rpartition(".")
                setattr(module.get_submodule(owner), name, buffer)
                buffer.copy_(value)


class _Recorder(TorchFunctionMode):
    _hears_attributes = False

    def __init__(
        self,
        inputs: Sequence[tuple[str, Tensor]],
        module: nn.Module,
        on_read: Callable[[str, str], None],
        is_live: bool,
    ) -> None:
        self._module = module
        self._is_live = is_live
        self._is_grad_enabled = self._was_grad_enabled = rl.is_grad_enabled()
        self._written: dict[int, tuple[Tensor, Tensor]] = {}  # with what they held before
        self._made: set[int] = set()  # tensors that the program made of its own numbers
        self._recording = Recording()
        self._graph = self._recording.graph
        self._on_read = on_read
        self._thread = threading.get_ident()
        self._paths: dict[int, str] = {}
        self._nodes: dict[int, Node] = {}  # of tensors, by their ids
        self._items: dict[int, tuple[Node, int]] = {}  # of tensors among several results
        self._kept: list[Any] = []  # so that no other object gets their ids
        self._storages: dict[int, Tensor] = {}  # a tensor that the recording knows, by address
        self._placed: dict[Any, Tensor] = {}  # and one by where in the storage it lies
        self._sharing: dict[int, list[Node]] = {}  # the nodes of each storage
        self._varying: set[Node] = set()  # what depends on inputs
        self._sized_by_elements: set[Node] = set()
        self._running: list[tuple[str, tuple[str, str]]] = []  # items of nn_module_stack
        for path, tensor in (*module.named_parameters(), *module.named_buffers()):
            self._paths.setdefault(id(tensor), path)
            self._kept.append(tensor)
        self._buffers = dict(module.named_buffers())
        self._attributes: dict[int, str] = {}  # the paths of other tensors that modules have
        for prefix, part in module.named_modules():
            for name, value in vars(part).items():
                if isinstance(value, Tensor):
                    self._attributes.setdefault(id(value), f"{prefix}.{name}".lstrip("."))
        self._constants: set[str] = set()  # the paths of tensors that are not in state_dict
        for name, tensor in inputs:
            node = self._graph.placeholder(name)
            self._varying.add(node)
            self._note(node, tensor)

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if any(isinstance(tensor, QuantizedTensor) for tensor in _tensors_in((args, kwargs))):
            return self._run_quantized(func, args, kwargs)
        if func is _C.tensor or func is _C.as_tensor:  # what they make of data is a constant
            return func(*args, **kwargs)
        if rl.is_autocast_enabled("cpu") or rl.is_autocast_enabled("cuda"):
            raise RefusedError(
                f"export: {_site()} runs under autocast, whose casts are not recorded. Convert the "
                "model with model.to(dtype) instead."
            )
        target, sent = _as_function(func, args)
        name = getattr(target, "__name__", "")
        if self._is_live:
            self._follow_grad_mode()
            if any(isinstance(value, rl.Generator) for value in (*args, *kwargs.values())):
                _refused("draws from a generator of its own")()
            if name.endswith("_") or name == "setitem" or name[:1] == "i" or "out" in kwargs:
                self._keep_written(_tensors_in((args, kwargs)))
        node_args, node_kwargs = map_aggregate((sent, kwargs), self._value)
        versions = [(tensor, tensor._version) for tensor in _tensors_in((args, kwargs))]
        result = func(*args, **kwargs)
        changed = [tensor for tensor, version in versions if tensor._version != version]
        # Tensors that share memory change together: the op wrote to the first.
        written = list({memory_of(t): self._nodes[id(t)] for t in reversed(changed)}.values())
        if name in _READING_OPS:
            self._tell_read(name, (args, kwargs))
        elif isinstance(result, (Tensor, tuple, list)) or written or hasattr(func, "is_mark"):
            node: Any = self._graph.call_function(target, node_args, node_kwargs)
            node.meta["site"] = _site()
            node.meta["nn_module_stack"] = dict(self._running)
            if written:
                node.meta["written"] = written
                self._note_writes(node, written)
            elif not self._varying.isdisjoint(node.all_input_nodes):
                self._varying.add(node)
                if _is_sized_by_elements(target, args):
                    self._sized_by_elements.add(node)
            if result is not None:
                self._note(node, result)
        return result

    def _run_quantized(
        self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Runs a function of quantized tensors, of which the ops on their integers are steps."""
        if self._is_live:
            _refused("computes with quantized tensors")()
        if func is Tensor.as_subclass:  # looks at the integers
            return func(*args)
        with self:
            return run_quantized(func, args, kwargs)

    def _note_writes(self, node: Node, written: list[Node]) -> None:
        """What shares memory with what was written depends on inputs if the step does."""
        for place, constant in enumerate(written):
            if self._is_live:
                break
            if constant.op == "get_attr" and constant.target in self._constants:
                with self._graph.inserting_after(constant):  # each run begins with the first value
                    copied = self._graph.call_function(rl.clone, (constant,))
                copied.meta = dict(constant.meta)
                constant.meta["storage"] = id(constant)  # what was its memory is now the copy's
                constant.replace_all_uses_with(copied)
                copied.args = (constant,)
                written[place] = copied
                self._sharing[copied.meta["storage"]].append(copied)
                for key, known in self._nodes.items():
                    if known is constant:
                        self._nodes[key] = copied
        if not self._varying.isdisjoint(node.all_input_nodes):
            storages = {other.meta["storage"] for other in written}
            self._varying.add(node)
            self._varying.update(n for s in storages for n in self._sharing[s])

    def _follow_grad_mode(self) -> None:
        """Makes a step of it where the program has turned gradients on or off."""
        if rl.is_grad_enabled() != self._is_grad_enabled:
            self._is_grad_enabled = not self._is_grad_enabled
            self._graph.call_function(_C._set_grad_enabled, (self._is_grad_enabled,))

    def _keep_written(self, tensors: list[Tensor]) -> None:
        """Notes what tensors from outside hold that an op may write to."""
        for tensor in tensors:
            whole = self._storages.get(memory_of(tensor), tensor)
            node = self._nodes.get(id(whole))
            if node is None or node.op == "get_attr":
                with rl.no_grad():
                    self._written.setdefault(id(whole), (whole, whole.clone()))

    def restore(self) -> None:
        """Gives tensors from outside the elements back that they had before."""
        with rl.no_grad():
            for tensor, before in self._written.values():
                tensor.copy_(before)

    def follow_modules(self) -> list[RemovableHandle]:
        """Notes from now on which modules run, but for the whole; returns what ends that."""
        paths = {id(module): path for path, module in self._module.named_modules() if path}
        calls = Counter[str]()

        def begin(module: nn.Module, args: Any) -> None:
            path = paths.get(id(module))
            if path is not None and threading.get_ident() == self._thread:
                name = f"{path}@{calls[path]}" if path in calls else path
                calls[path] += 1
                self._running.append((name, (path, torch_name(type(module)))))

        def end(module: nn.Module, args: Any, result: Any) -> None:
            if id(module) in paths and threading.get_ident() == self._thread:
                self._running.pop()

        return [
            register_module_forward_pre_hook(begin),
            register_module_forward_hook(end, always_call=True),
        ]

    # What leaves the ops

    def reader(self, name: str) -> Any:
        """The method of Tensor, which tells when what it reads depends on inputs."""
        method = getattr(Tensor, name)

        def read(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
            if threading.get_ident() == self._thread:
                self._tell_read(name, [tensor, *args])
            return method(tensor, *args, **kwargs)

        return read

    def maker(self, make: Callable[..., Tensor]) -> Any:
        """torch.tensor, or the method like it, which tells when it copies from the inputs."""
        first = 0 if make is rl.tensor else 1

        def tensor(*args: Any, **kwargs: Any) -> Tensor:
            if threading.get_ident() == self._thread:
                self._tell_read("torch.tensor", (args[first:], kwargs))
            made = make(*args, **kwargs)
            self._made.add(id(made))
            self._kept.append(made)
            return made

        return tensor

    def _tell_read(self, name: str, values: Any) -> None:
        if any(map(self._depends, _tensors_in(values))):
            self._on_read(name, _site())

    def _depends(self, tensor: Tensor) -> bool:
        node = self._items[id(tensor)][0] if id(tensor) in self._items else None
        return self._nodes.get(id(tensor), node) in self._varying

    # Tensors and their nodes

    def _note(self, node: Node, result: Any) -> None:
        """Remembers what a node returned."""
        self._kept.append(result)
        if isinstance(result, Tensor):
            self._items.pop(id(result), None)
            self._nodes[id(result)] = node
            address = memory_of(result)
            node.meta["storage"] = storage = id(self._storages.setdefault(address, result))
            self._sharing.setdefault(storage, []).append(node)
            self._placed.setdefault(_place(result), result)
        else:
            for place, item in enumerate(result):
                if isinstance(item, Tensor):
                    self._items[id(item)] = node, place
                    self._storages.setdefault(memory_of(item), item)
                    self._placed.setdefault(_place(item), item)
        node.meta["tensor_meta"] = map_aggregate(result, _metadata)

    def _value(self, value: Any) -> Any:
        return self._node(value) if isinstance(value, Tensor) else value

    def _node(self, tensor: Tensor) -> Node:
        """The node of a tensor, made when it is an item or nothing has made it."""
        key = id(tensor)
        if key in self._nodes:
            return self._nodes[key]
        if key in self._items:
            source, place = self._items[key]
            node = self._graph.call_function(operator.getitem, (source, place))
            node.meta["site"] = source.meta.get("site")
            node.meta["nn_module_stack"] = dict(self._running)
            if source in self._varying:
                self._varying.add(node)
            if source in self._sized_by_elements:
                self._sized_by_elements.add(node)
        else:
            node = self._unknown(tensor)
        self._note(node, tensor)
        return node

    def _unknown(self, tensor: Tensor) -> Node:
        """The node of a tensor that no op made: a parameter, a constant, or .data of another."""
        if _C._lift_of(tensor) is not None:
            raise RefusedError(
                f"export: {_site()} calls ops inside a transform such as vmap or grad, which "
                "cannot be recorded. Write what the transform does with ops."
            )
        path = self._paths.get(id(tensor))
        source = self._storages.get(memory_of(tensor)) if path is None else None
        if source is not None and (id(source) in self._nodes or id(source) in self._items):
            same = self._placed.get(_place(tensor))
            if same is None:
                raise RefusedError(
                    f"export: {_site()} uses a tensor that shares memory with another one in a way "
                    "that no op made. Use ops, such as detach instead of .data."
                )
            node = self._node(same)
            alias = self._graph.call_function(rl.detach, (node,))
            self._varying.update({alias} if node in self._varying else ())
            return alias
        if path is None:
            unnamed = sum(p.startswith(_CONSTANT) for p in self._recording.tensors)
            path = self._attributes.get(id(tensor), f"{_CONSTANT}{unnamed}")
            self._constants.add(path)
            tensor = tensor if self._is_live else tensor.detach().clone()
        self._recording.tensors[path] = tensor
        node = self._graph.get_attr(path)
        if self._is_live and id(tensor) not in self._made:  # it may hold others when the graph runs
            self._varying.add(node)
        return node

    def finish(self, results: Sequence[Any]) -> Recording:
        """The recording, which ends with the results and the buffers that were assigned anew."""
        for result in results:
            if isinstance(result, QuantizedTensor):
                raise RefusedError(
                    "export: the program returns a quantized tensor, which files do not know. "
                    "Return result.dequantize(), or put a DeQuantStub at the end."
                )
            if not isinstance(result, (*CONSTANTS, slice, rl.Size)):
                raise RefusedError(
                    f"export: the program returns {result!r}, a {type(result).__name__}. Results "
                    "are tensors, numbers, text, and lists, tuples and dicts of them."
                )
        if self._is_live:
            self._follow_grad_mode()
            if rl.is_grad_enabled() != self._was_grad_enabled:
                raise RefusedError("The program leaves gradients turned on or off.")
        outputs = map_aggregate(tuple(results), self._value)
        for path, now in self._module.named_buffers():
            before = self._buffers.get(path)
            if before is not None and now is not before:
                node = self._graph.call_function(
                    Tensor.copy_, (self._node(before), self._node(now))
                )
                self._note(node, before)
        self._graph.output(outputs)
        for node in self._sized_by_elements:
            node.meta["sized_by_elements"] = True
            for user in node.users:  # it may have used the size as a number
                if user.op != "output" and user not in self._sized_by_elements:
                    self._on_read(f"the size of {node.name}", str(node.meta["site"]))
        return self._recording


def _is_sized_by_elements(target: Any, args: tuple[Any, ...]) -> bool:
    """Whether the elements of an op's arguments decide the shape of what it returns."""
    name = getattr(target, "__name__", "")
    if target is operator.getitem:
        return any(t.dtype in (rl.bool, rl.uint8) for t in _tensors_in(args[1:]))
    if name == "where":
        return len(args) == 1
    return name in _SIZED_BY_ELEMENTS or (
        name == "repeat_interleave" and len(_tensors_in(args)) > 1
    )


def _tensors_in(values: Any) -> list[Tensor]:
    found: list[Tensor] = []
    map_aggregate(values, lambda v: found.append(v) if isinstance(v, Tensor) else None)
    return found


def _as_function(func: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """A method like __rsub__ or __getitem__ as the function of operator that does it."""
    func = function_of(func)
    name = getattr(func, "__name__", "")
    if not (name.startswith("__") and name.endswith("__")):
        return func, args
    plain = name.strip("_")
    if hasattr(operator, plain):
        return getattr(operator, plain), args
    return getattr(operator, plain.removeprefix("r")), (args[1], args[0], *args[2:])


def _metadata(value: Any) -> Any:
    return _extract_tensor_metadata(value) if isinstance(value, Tensor) else value


def _place(tensor: Tensor) -> tuple[Any, ...]:
    where = memory_of(tensor), tensor.storage_offset()
    return *where, tensor.shape, tensor.stride(), tensor.dtype


def _site() -> str:
    """The line of the program that is running."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(_PACKAGE) or name.startswith(_MODELS):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "unknown:0"
