"""Symbolic tracing: a module is called with Proxies, and what it does to them becomes a graph.

Owns how modules, parameters and constants appear in the graph. While a trace runs, the call of
every module goes through it, so one runs at a time.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import math
import operator
import threading
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any, ForwardRef

import rushlight as rl
from rushlight import Tensor, nn
from rushlight._signatures import annotations, signature
from rushlight.fx._tree_code import TreeCodeGen
from rushlight.fx._wrapping import Patches, patch_marked, recorded
from rushlight.fx.graph import Graph
from rushlight.fx.graph_module import GraphModule
from rushlight.fx.node import CONSTANTS, Argument, map_aggregate
from rushlight.fx.proxy import ParameterProxy, Proxy, TracerBase
from rushlight.nn.modules._hooks import Hooked
from rushlight.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "symbolic_trace"]


class PHBase:
    """What marks an argument in concrete_args that remains an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()

_run_module: Any = Hooked.__call__
_trace_lock = threading.RLock()
_is_fx_tracing_flag = False


def is_fx_tracing() -> bool:
    """Returns whether a Tracer records."""
    return _is_fx_tracing_flag


@contextlib.contextmanager
def _flag_set() -> Iterator[None]:
    global _is_fx_tracing_flag
    before, _is_fx_tracing_flag = _is_fx_tracing_flag, True
    try:
        yield
    finally:
        _is_fx_tracing_flag = before


class ProxyableClassMeta(type):
    """Lets graphs make objects of a class: with Proxies, a call of the class becomes a node.

    Objects that are there already become attributes of the module that is recorded.

    Example:
        >>> class Pair(metaclass=torch.fx.ProxyableClassMeta):
        ...     def __init__(self, left, right):
        ...         self.left, self.right = left, right
        >>> traced = torch.fx.symbolic_trace(lambda x: Pair(x, x + 1).right)
        >>> [node.name for node in traced.graph.nodes]
        ['x', 'add', 'pair', 'getattr_1', 'output']
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        found: list[Proxy] = []
        if _is_fx_tracing_flag:
            map_aggregate((args, kwargs), lambda a: found.append(a) if isinstance(a, Proxy) else a)
        if found:
            return found[0].tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


class Tracer(TracerBase):
    """Records modules; override its methods to record differently.

    Args:
        autowrap_modules: modules whose functions are recorded when Proxies meet them.
        autowrap_functions: more functions of which this is true.
        param_shapes_constant: whether the shapes of parameters are known, so that the program may
            decide by them.

    Attributes:
        root: the module that is recorded.
        proxy_buffer_attributes: whether a look at a buffer is recorded, as one at a parameter is;
            without it, what is computed from buffers alone becomes a constant.
        traced_func_name: the method of a module that is recorded.

    Example:
        >>> class Inside(torch.fx.Tracer):
        ...     def is_leaf_module(self, m, module_qualified_name):
        ...         return False
        >>> print(Inside().trace(torch.nn.ReLU()).find_nodes(op="call_function")[0].target)
        <op relu>
    """

    root: nn.Module
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self.param_shapes_constant = param_shapes_constant
        self._autowrap_modules = tuple(autowrap_modules)
        functions = [
            value
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        ]
        self._autowrap_ids = {id(function) for function in (*functions, *autowrap_functions)}
        self.module_stack = {}
        self.num_calls: dict[str, int] = {}  # of modules, by path

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        """Returns a copy, of its graph too; modules of Python are the same."""
        copied = memo[id(self)] = type(self).__new__(type(self))
        memo.update({id(module): module for module in self._autowrap_modules})
        vars(copied).update(copy.deepcopy(vars(self), memo))
        return copied

    # What a subclass may change

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        """Returns whether calls of a module become one node, and what it does remains inside.

        By default this is so for all layers of nn but Sequential.
        """
        return m.__module__.startswith("rushlight.nn.") and not isinstance(m, nn.Sequential)

    def path_of_module(self, mod: nn.Module) -> str:
        """Returns the path from the root to a module.

        Raises:
            NameError: if there is none.
        """
        path = self._paths.get(mod)
        if path is None:
            raise NameError("module is not installed as a submodule")
        return path

    def call_module(
        self,
        m: nn.Module,
        forward: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Called for the call of a module; returns its result, a Proxy as a rule.

        Args:
            m: the module.
            forward: runs it.
            args: the arguments of the call.
            kwargs: its keyword arguments.
        """
        path = self.path_of_module(m)
        count = self.num_calls[path] = self.num_calls.get(path, -1) + 1
        self.module_stack[f"{path}@{count}" if count else path] = (path, type(m))
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            self.module_stack.popitem()

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """Called for a look at a tensor of a module; returns what the program gets.

        Args:
            attr: the name.
            attr_val: the tensor.
            parameter_proxy_cache: the Proxies that there are, by the paths of the tensors.

        Returns:
            A Proxy for a parameter, so that what is computed from it is recorded; else the tensor.
        """
        is_recorded = isinstance(attr_val, nn.Parameter) or self.proxy_buffer_attributes
        path = self._tensor_paths.get(attr_val) if is_recorded else None
        if path is None:
            return attr_val
        if path not in parameter_proxy_cache:
            factory = None
            if self.param_shapes_constant:
                factory = functools.partial(ParameterProxy, self, name=path, param=attr_val)
            parameter_proxy_cache[path] = self.create_proxy(
                "get_attr", path, (), {}, proxy_factory_fn=factory
            )
        return parameter_proxy_cache[path]

    def create_arg(self, a: Any) -> Argument:
        """Returns a value of the program as an argument of nodes.

        Parameters and buffers are those of the root; other tensors become attributes of it named
        _tensor_constant0 and so on.

        Raises:
            NameError: if a parameter is not one of the root.
        """
        if isinstance(a, Tensor):
            path = self._tensor_paths.get(a)
            if path is None:
                if isinstance(a, nn.Parameter):
                    raise NameError("parameter is not a member of this module")
                path = self._fresh_name("_tensor_constant")
                self._tensor_paths[a] = path
                setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        if isinstance(a, nn.Module) and a in self._paths:
            return self.create_node("get_attr", self._paths[a], (), {})
        if isinstance(type(a), ProxyableClassMeta):
            path = self._fresh_name(f"_{type(a).__name__}_constant_")
            setattr(self.root, path, a)
            return self.create_node("get_attr", path, (), {})
        return super().create_arg(a)

    def get_fresh_qualname(self, prefix: str) -> str:
        """Returns a name that the root has no attribute of: the prefix and a number."""
        return self._fresh_name(prefix)

    def _fresh_name(self, prefix: str) -> str:
        number = 0
        while hasattr(self.root, f"{prefix}{number}"):
            number += 1
        return f"{prefix}{number}"

    # Tracing

    def trace(
        self,
        root: nn.Module | Callable[..., Any],
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> Graph:
        """Returns the graph of what a module or function does.

        Args:
            root: what is recorded.
            concrete_args: values of arguments that are to be no inputs, by name.

        Raises:
            TraceError: if it decides by a value that is not known.
            AssertionError: if the module has no method traced_func_name.
        """
        if isinstance(root, nn.Module):
            self.root = root
            if not hasattr(type(root), self.traced_func_name):
                raise AssertionError(
                    f"traced_func_name={self.traced_func_name} doesn't exist in "
                    f"{type(root).__name__}"
                )
            function = getattr(type(root), self.traced_func_name)
        else:
            self.root = nn.Module()
            function = root
        cls: type | None = type(self)
        self.graph = Graph(tracer_cls=cls if "<locals>" not in cls.__qualname__ else None)
        self._paths = {module: name for name, module in self.root.named_modules()}
        self._tensor_paths: dict[Any, str] = {}
        self._note_tensors(self.root)
        self.module_stack = {}
        self.num_calls = {}
        if not isinstance(function, FunctionType):
            function = _as_function(function)
        original = function
        function, args = self.create_args_for_root(
            function, isinstance(root, nn.Module), concrete_args
        )
        with _trace_lock, contextlib.ExitStack() as stack:
            patches = Patches(stack)
            self._patch_modules(patches)
            self._patch_functions(patches, original.__globals__)
            stack.enter_context(_flag_set())
            result = self.create_arg(function(*args))
        annotation = _annotation(original, "return")
        self.create_node("output", "output", (result,), {}, type_expr=annotation)
        return self.graph

    def _note_tensors(self, module: nn.Module) -> None:
        """Notes the paths of parameters, buffers and tensors that are plain attributes."""
        for name, value in (*module.named_parameters(), *module.named_buffers()):
            self._tensor_paths.setdefault(value, name)
        for path, child in module.named_modules():
            for name, value in vars(child).items():
                if isinstance(value, Tensor):
                    self._tensor_paths.setdefault(value, f"{path}.{name}" if path else name)

    def _patch_modules(self, patches: Patches) -> None:
        """Lets the calls of modules and looks at their tensors come here."""
        tracer, thread = self, threading.get_ident()

        @functools.wraps(_run_module)
        def call(module: nn.Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return _run_module(module, *args, **kwargs)

            if threading.get_ident() != thread:
                return forward(*args, **kwargs)
            return tracer.call_module(module, forward, args, kwargs)

        def get(module: nn.Module, name: str) -> Any:
            value = object.__getattribute__(module, name)
            if isinstance(value, Tensor) and threading.get_ident() == thread:
                return tracer.getattr(name, value, parameters)
            return value

        parameters: dict[str, Any] = {}
        patches.set_attribute(Hooked, "__call__", call)
        patches.set_attribute(Hooked, "__getattribute__", get)

    def _patch_functions(self, patches: Patches, names: dict[str, Any]) -> None:
        """Lets the calls of marked functions, and of those of autowrap_modules, be recorded."""
        patch_marked(patches, names)
        for found in (names, *map(vars, self._autowrap_modules)):
            for name, value in list(found.items()):
                if id(value) in self._autowrap_ids and not name.startswith("_"):
                    patches.set_item(found, name, recorded(value))

    def create_args_for_root(
        self,
        root_fn: FunctionType,
        is_module: bool,
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Returns the function to call and what to call it with: a Proxy for each parameter.

        *args and **kwargs are one Proxy each.

        Args:
            root_fn: the function.
            is_module: whether its first parameter is the root.
            concrete_args: values of arguments that are to be no inputs.
        """
        code = inspect.unwrap(root_fn).__code__
        parameters = signature(inspect.unwrap(root_fn)).parameters
        count = code.co_argcount + code.co_kwonlyargcount
        first = int(is_module)
        if is_module and code.co_argcount == 0:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        names = list(code.co_varnames[first:count])
        if isinstance(concrete_args, tuple):
            if len(concrete_args) != len(names):
                raise RuntimeError(
                    f"Tracing expected {len(names)} arguments but got {len(concrete_args)} "
                    "concrete arguments"
                )
            concrete_args = dict(zip(names, concrete_args, strict=True))
        stars = count
        for flag, mark in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
            if code.co_flags & flag:
                names.append(mark + code.co_varnames[stars])
                stars += 1
        given = concrete_args or {}
        args: list[Any] = [self.root] if is_module else []
        for name in names:
            default = inspect.Parameter.empty
            if not name.startswith("*"):
                default = parameters[name].default
            args.append(self._input(name, default, _annotation(root_fn, name), given))
        self._take_apart(names, given)
        if code.co_kwonlyargcount or stars > count:
            root_fn = _with_plain_parameters(root_fn, len(args))
        return root_fn, args

    def _take_apart(self, names: list[str], given: dict[str, Any]) -> None:
        """Lets the graph take what concrete_args has lists, tuples or dicts for."""
        shapes = tuple(given.get(name, PH) for name in names)
        leaves, spec = tree_flatten(shapes)
        if len(leaves) == len(names) and all(map(operator.is_, leaves, shapes)):
            return
        if any(name.startswith("*") for name in names):
            raise NotImplementedError(
                "symbolic_trace: concrete_args has a list, tuple or dict for a function with "
                f"{', '.join(names)}. Name its arguments in a function around it."
            )
        self.graph.set_codegen(TreeCodeGen(names, spec, None))

    def _input(self, name: str, default: Any, annotation: Any, given: dict[str, Any]) -> Any:
        """A Proxy for a parameter, or its value, which the graph then checks."""
        defaults = () if default is inspect.Parameter.empty else (default,)
        if name not in given:
            return self.create_proxy("placeholder", name, defaults, {}, type_expr=annotation)
        value = given[name]
        if not isinstance(value, (list, tuple, dict)):
            return self._given_input(name, 1, value, defaults)
        leaves, spec = tree_flatten(value)
        inputs = [self._given_input(name, number, leaf) for number, leaf in enumerate(leaves, 1)]
        return tree_unflatten(inputs, spec)

    def _given_input(
        self, name: str, number: int, value: Any, defaults: tuple[Any, ...] = ()
    ) -> Any:
        proxy = self.create_proxy("placeholder", f"{name}_{number}", defaults, {})
        if isinstance(value, PHBase):
            return proxy
        message = f"{name} has been specialized to have value {value} but got another value"
        if value is None:
            self.create_proxy("call_function", _assert_is_none, (proxy, message), {})
        elif isinstance(value, CONSTANTS) and not isinstance(value, Tensor):
            rl._assert(proxy == value, message)
        return value


def _assert_is_none(value: Any, msg: str) -> None:
    """What a graph calls to check an argument that was None when it was recorded."""
    if value is not None:
        raise AssertionError(msg)


def _annotation(function: FunctionType, name: str) -> Any:
    """A parameter's annotation, or the result's; None for one that only type checkers can read."""
    annotation = annotations(function).get(name)
    if isinstance(annotation, ForwardRef):
        return None
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, function.__globals__)
    except Exception:
        return None


def _as_function(root: Callable[..., Any]) -> FunctionType:
    """A function with a signature for a callable of another kind, such as a bound method."""
    inside = inspect.unwrap(root)
    if inspect.ismethod(inside):
        parameters = list(signature(inside).parameters)
        line = f"lambda {', '.join(parameters)}: root({', '.join(parameters)})"
        return eval(line, {**inside.__func__.__globals__, "root": root})
    if not isinstance(inside, FunctionType):
        raise TypeError(
            f"trace: cannot record {root!r}. It must be a module or a function written in Python."
        )
    return inside


def _with_plain_parameters(function: FunctionType, count: int) -> FunctionType:
    """The function with all of its parameters by place, *args and **kwargs as one each."""
    code: CodeType = function.__code__
    stars = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
    plain = code.replace(
        co_flags=code.co_flags & ~stars,
        co_argcount=count,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
    )
    made = FunctionType(
        plain, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def symbolic_trace(
    root: nn.Module | Callable[..., Any],
    concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
) -> GraphModule:
    """Returns a module or function as a GraphModule: a graph of what it does, and its code.

    Args:
        root: what is recorded; layers of nn are nodes of their own.
        concrete_args: values of arguments that are to be no inputs, by name, so that the program
            may decide by them. A list, tuple or dict stands for an argument that is built so; its
            items are values, or fx.PH for inputs.

    Raises:
        TraceError: if it decides by a value that is known only when the graph runs.

    Example:
        >>> class Net(torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.layer = torch.nn.Linear(2, 3)
        ...     def forward(self, x):
        ...         return self.layer(x).relu() + 1
        >>> traced = torch.fx.symbolic_trace(Net())
        >>> print(traced.code.strip())
        def forward(self, x):
            layer = self.layer(x);  x = None
            relu = layer.relu();  layer = None
            add = relu + 1;  relu = None
            return add
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, nn.Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
