"""Recorded programs in files: a zip of program.json, the graph, and tensors.safetensors.

Invariant: reading runs nothing from the file. What a graph calls is looked up among the ops and a
few functions of operator; names become identifiers, and all else is plain data that is checked.
"""

from __future__ import annotations

import functools
import io
import json
import keyword
import operator
import os
import re
import zipfile
from collections import OrderedDict
from collections.abc import Callable
from typing import IO, Any

from rushlight import _C, Tensor, nn
from rushlight._checkpoint.archive import replace_when_complete
from rushlight._checkpoint.plain_data import decoded, dtype_of, encoded, tagged
from rushlight._signatures import signature
from rushlight.export._calling import Calling, Constant, Input
from rushlight.export._program import Program
from rushlight.export.dynamic_shapes import Dim
from rushlight.fx.graph import Graph
from rushlight.fx.node import Node
from rushlight.utils import safetensors
from rushlight.utils._pytree import TreeSpec

FileLike = str | os.PathLike[str] | IO[bytes]

__all__ = ["read", "write"]

_VERSION = 1
_GRAPH, _TENSORS, _EXTRA = "program.json", "tensors.safetensors", "extra/"
_PATH = re.compile(r"""[^\s."'\\]+(\.[^\s."'\\]+)*""")  # code has it in quotes
_CONTAINERS = {"list": list, "tuple": tuple, "dict": dict, "OrderedDict": OrderedDict}
_OPERATORS = {
    name: getattr(operator, name)
    for name in (
        *("add", "and_", "floordiv", "getitem", "lshift", "matmul", "mod", "mul", "neg", "or_"),
        *("pow", "rshift", "setitem", "sub", "truediv", "xor"),
    )
}
_MAY_BE_SUBCLASSED: tuple[Any, ...] = (list, tuple, int, float)

# Ops without a public name that functions written in Python call.
_PRIVATE = (
    *("_cast", "_fractional_max_pool", "_histogram", "_max_unpool", "_to", "_unique"),
    *("_unique_consecutive", "alias", "einsum"),
    *("_choose_qparams", "_dequantize", "_dequantize_channels", "_int8_dynamic_linear"),
    *("_int8_product", "_quantize", "_quantize_channels", "_quantized_add"),
)


@functools.cache
def _ops() -> dict[str, Callable[..., Any]]:
    """All ops that a graph may call by home and name."""
    known: Any = _C._op_homes  # pyright: ignore[reportAttributeAccessIssue]
    homes = {**known, "_C": {name: getattr(_C, name) for name in _PRIVATE}}
    return {f"{home}.{name}": op for home, ops in homes.items() for name, op in ops.items()}


@functools.cache
def _op_names() -> dict[int, str]:
    return {id(op): name for name, op in _ops().items()}


# Writing


def write(program: Program, file: FileLike, extra: dict[str, Any] | None) -> None:
    """Writes a program.

    Args:
        program: what is written.
        file: a path, whose file is replaced when the new one is complete, or a file object.
        extra: more entries of the zip: text or bytes by name.
    """
    if isinstance(file, (str, os.PathLike)):
        with replace_when_complete(os.fspath(file)) as opened:
            write(program, opened, extra)
        return
    program.check_has_elements("save")
    keys: dict[int, str] = {}  # tensors that several paths share are written once
    for path, tensor in program.tensors.items():
        keys.setdefault(id(tensor), path)
    stored = {keys[id(t)]: t.detach().clone().contiguous() for t in program.tensors.values()}
    text = json.dumps(_program_data(program, keys), allow_nan=False)
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(_GRAPH, text)
        archive.writestr(_TENSORS, safetensors.save(stored))
        for name, content in (extra or {}).items():
            if not isinstance(content, (str, bytes)):
                raise TypeError(
                    f"save: the extra file {name!r} is {type(content)}. Give text or bytes."
                )
            archive.writestr(_EXTRA + name, content)


def _program_data(program: Program, keys: dict[int, str]) -> dict[str, Any]:
    calling, places = program.calling, {}
    rows = []
    for node in program.graph.nodes:
        target = _target_name(node) if node.op == "call_function" else node.target
        rows.append(
            {
                "op": node.op,
                "name": node.name,
                "target": target,
                "args": _data(node.args, places),
                "kwargs": _data(node.kwargs, places),
                "site": node.meta.get("site"),
                "modules": _modules(node.meta.get("nn_module_stack", {})),
            }
        )
        places[node] = len(places)
    return {
        "version": _VERSION,
        "name": program.name,
        "training": program.training,
        "tensors": {
            path: {
                "key": keys[id(tensor)],
                "parameter": isinstance(tensor, nn.Parameter),
                "requires_grad": tensor.requires_grad,
                "temporary": path in program.temporary,
                "constant": path in program.constants,
            }
            for path, tensor in program.tensors.items()
        },
        "names": calling.names,
        "in_spec": _spec_data(calling.in_spec),
        "out_spec": _spec_data(calling.out_spec),
        "is_checked": calling.is_checked,
        "leaves": [_leaf_data(leaf) for leaf in calling.leaves],
        "nodes": rows,
    }


def _target_name(node: Node) -> str:
    name = _op_names().get(id(node.target)) or getattr(node.target, "__name__", "")
    if name in _ops() or _OPERATORS.get(name) is node.target:
        return name
    raise RuntimeError(
        f"save: {node.name} calls {node.target!r} ({node.meta.get('site')}), which is no op of "
        "rushlight. A file can only name its ops; use them, or keep the module itself."
    )


def _data(value: Any, places: dict[Node, int] | None = None) -> Any:
    """A value as JSON, in which nodes are numbers."""

    def other(value: Any) -> Any:
        if places is not None and isinstance(value, Node):
            return tagged("node", places[value])
        for kind in _MAY_BE_SUBCLASSED:
            if isinstance(value, kind):
                return encoded(kind(value), other)
        raise RuntimeError(
            f"save: the program has the argument {value!r}, which a file cannot hold. Use numbers, "
            "text, tensors, and lists, tuples and dicts of them."
        )

    return encoded(value, other)


def _spec_data(spec: TreeSpec) -> Any:
    """How a tree is built. Named tuples and other classes come back as tuples."""
    if spec.type is None:
        return None
    kind = spec.type.__name__ if spec.type.__name__ in _CONTAINERS else "tuple"
    keys = spec.context if kind in ("dict", "OrderedDict") else None
    return [kind, _data(keys), *map(_spec_data, spec.children())]


def _leaf_data(leaf: Input | Constant) -> Any:
    if isinstance(leaf, Constant):
        return {"value": _data(leaf.value)}
    shape = [size if isinstance(size, int) else _dim_data(size) for size in leaf.shape]
    return {"name": leaf.name, "dtype": str(leaf.dtype), "shape": shape}


def _dim_data(dim: Dim) -> Any:
    root = dim.root
    high = None if root.max == float("inf") else root.max
    return [root.__name__, root.min, high, dim.scale, dim.offset]


# Reading


def read(file: FileLike, extra: dict[str, Any] | None, device: Any = None) -> Program:
    """Reads a program.

    Args:
        file: a path or a file object.
        extra: names of more entries; their values become the bytes that were written.
        device: where the tensors go; None is the CPU.

    Raises:
        RuntimeError: if the file holds no program.
    """
    if not isinstance(file, (str, os.PathLike)):
        file = io.BytesIO(file.read())
    try:
        with zipfile.ZipFile(file) as archive:
            names = set(archive.namelist())
            if _GRAPH not in names:
                _refuse_other(names)
            if any(info.compress_type != zipfile.ZIP_STORED for info in archive.infolist()):
                raise ValueError("it is compressed, and may be of any size unfolded")
            data = json.loads(archive.read(_GRAPH))
            tensors = safetensors.load(archive.read(_TENSORS))
            for name in extra or {}:
                assert extra is not None
                if _EXTRA + name in names:
                    extra[name] = archive.read(_EXTRA + name)
        if data["version"] != _VERSION:
            raise ValueError(f"it has version {data['version']}, but version {_VERSION} is known")
        return _program(data, tensors, device)
    except Exception as error:  # whatever is wrong with what the file says
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        if isinstance(reason, (OSError, RuntimeError)):
            raise
        raise RuntimeError(f"load: the file is damaged or no saved program: {reason}") from error


def _refuse_other(names: set[str]) -> None:
    if any("/code/" in name or name.endswith("constants.pkl") for name in names):
        raise RuntimeError(
            "load: this is a TorchScript archive of PyTorch, whose programs cannot be run "
            "here. Build the model in Python and load its parameters: in PyTorch, "
            "torch.save(torch.jit.load(path).state_dict(), 'weights.pt')."
        )
    if any(name.endswith("models/model.json") for name in names):
        raise RuntimeError(
            "load: this is an archive of PyTorch's torch.export, whose programs cannot be run "
            "here. Build the model in Python and load its parameters from a state_dict."
        )
    if any(name.endswith("data.pkl") for name in names):
        raise RuntimeError(
            "load: this file holds tensors and no program. Read it with torch.load, and give them "
            "to a model with load_state_dict."
        )
    raise RuntimeError("load: this file holds no program of torch.export.save or torch.jit.save.")


def _program(data: dict[str, Any], stored: dict[str, Tensor], device: Any) -> Program:
    if device is not None:
        stored = {key: tensor.to(device) for key, tensor in stored.items()}
    objects: dict[Any, Tensor] = {}
    tensors = {}
    for path, said in data["tensors"].items():
        _check(_PATH.fullmatch(path) is not None, f"{path!r} is no path")
        tensor, key = stored[said["key"]], (said["key"], said["parameter"])
        if key not in objects:
            is_parameter = bool(said["parameter"])
            grad = bool(said["requires_grad"])
            objects[key] = nn.Parameter(tensor, requires_grad=grad) if is_parameter else tensor
        tensors[path] = objects[key]
    graph = _graph(data["nodes"], tensors)
    _check(data["nodes"][-1]["op"] == "output", "the graph has no output")
    names = data["names"]
    for name in names:
        _check_name(name.lstrip("*"))
    dims: dict[str, Dim] = {}
    leaves = [_leaf(leaf, dims) for leaf in data["leaves"]]
    in_spec, out_spec = _spec(data["in_spec"]), _spec(data["out_spec"])
    _check(in_spec.num_leaves == len(leaves), "the arguments do not fit their names")
    _check(in_spec.num_children == len(names), "the arguments do not fit their names")
    results = graph.output_node().args[0]
    fits = isinstance(results, tuple) and len(results) == out_spec.num_leaves
    _check(fits, "the results do not fit the graph")
    graph.set_codegen(Calling(names, in_spec, leaves, out_spec, bool(data["is_checked"])))
    graph.lint()
    flags = data["tensors"].items()
    return Program(
        str(data["name"]),
        graph,
        tensors,
        {path for path, said in flags if said["temporary"]},
        {path for path, said in flags if said["constant"]},
        bool(data["training"]),
    )


def _graph(rows: list[dict[str, Any]], tensors: dict[str, Tensor]) -> Graph:
    graph, nodes = Graph(), []
    for row in rows:
        op, target = row["op"], row["target"]
        if op == "call_function":
            target = _ops().get(target) or _OPERATORS[target]
        elif op == "get_attr":
            _check(target in tensors, f"there is no tensor {target!r}")
        elif op == "call_method":
            _check(target == "size", f"{target!r} is no method that programs call")
        else:
            _check(op in ("placeholder", "output"), f"{op!r} is no kind of step")
            _check_name(target)
        _check_name(row["name"])
        kinds = {"node": nodes.__getitem__}
        args, kwargs = decoded(row["args"], kinds), decoded(row["kwargs"], kinds)
        for key in kwargs:
            _check_name(key)
        if op == "call_method":
            _check(bool(args) and isinstance(args[0], Node), "a method has no object")
        elif op == "placeholder":
            _check(not args and not kwargs, "an input has arguments")
        elif target in _OPERATORS.values():
            signature(target).bind(*args, **kwargs)
        node = graph.create_node(op, target, args, kwargs, row["name"])
        node.meta["site"] = row["site"]
        if "modules" in row:
            node.meta["nn_module_stack"] = modules = _modules(row["modules"])
            _check(modules.keys() == row["modules"].keys(), "there are odd names of modules")
        nodes.append(node)
    return graph


def _modules(stack: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Those modules in a node's nn_module_stack that generated code can call."""
    return {
        name: (path, str(kind))
        for name, (path, kind) in stack.items()
        if _PATH.fullmatch(path) and re.fullmatch(re.escape(path) + r"(@\d+)?", name)
    }


def _spec(data: Any) -> TreeSpec:
    if data is None:
        return TreeSpec(None, None, [])
    kind, keys, *children = data
    return TreeSpec(_CONTAINERS[kind], decoded(keys), [_spec(child) for child in children])


def _leaf(data: dict[str, Any], dims: dict[str, Dim]) -> Input | Constant:
    if "value" in data:
        return Constant(decoded(data["value"]))
    shape = tuple(size if isinstance(size, int) else _dim(size, dims) for size in data["shape"])
    return Input(str(data["name"]), dtype_of(data["dtype"]), shape)


def _dim(data: Any, dims: dict[str, Dim]) -> Dim:
    name, low, high, scale, offset = data
    root = dims.setdefault(name, Dim(name, min=low, max=high))
    return root if (scale, offset) == (1, 0) else scale * root + offset


def _check(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


def _check_name(name: Any) -> None:
    """Refuses what would be more than a name in generated code."""
    is_name = isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)
    _check(is_name, f"{name!r} is no name")
