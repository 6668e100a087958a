"""Writes the ops as C++ sees them: methods of at::Tensor and functions of namespace at.

python tools/make_cpp_ops.py            write them
python tools/make_cpp_ops.py --check    fail when the committed ones are stale
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from rushlight import _C  # noqa: E402

FOLDER = ROOT / "rushlight" / "include" / "rushlight"
# By the types of arguments in schemas, see core/base/schema.h; generators are left out.
TYPES = {
    "Tensor": "const Tensor&",
    "Tensor?": "const optional<Tensor>&",
    "Tensor!": "const Tensor&",
    "Tensor[]": "TensorList",
    "Tensor?[]": "TensorList",
    "int": "int64_t",
    "int?": "optional<int64_t>",
    "int[]": "IntArrayRef",
    "int[]?": "OptionalIntArrayRef",
    "float": "double",
    "float?": "optional<double>",
    "bool": "bool",
    "bool?": "optional<bool>",
    "str": "string_view",
    "str?": "optional<string_view>",
    "Scalar": "const Scalar&",
    "Scalar?": "const optional<Scalar>&",
    "dtype?": "optional<ScalarType>",
    "device?": "optional<Device>",
    "memory_format?": "optional<MemoryFormat>",
}
GENERATOR = "Generator?"
RETURNS = {
    "Tensor": "Tensor",
    "Tensor[]": "std::vector<Tensor>",
    "bool": "bool",
    "int": "int64_t",
    "float": "double",
    "Scalar": "Scalar",
    "dtype": "ScalarType",
}
# Modules by their first name in an op's home, with what stands before the names of their functions.
MODULES = {
    "torch": "",
    "nn.functional": "",
    "linalg": "linalg_",
    "special": "special_",
    "fft": "fft_",
}
KEYWORDS = {"and", "or", "not", "xor", "default", "register", "signed", "unsigned", "char", "short"}
# What tensor.h has in a form of its own.
OWN_METHODS = {"index_put", "index_put_"}
Param = tuple[str, str, str]  # type, name, default or ""


def literal(arg: dict[str, Any]) -> str:
    text, kind = arg["default"], arg["type"]
    if text is None:
        return ""
    if text == "None":
        return "{}" if TYPES[kind] == "TensorList" else "nullopt"
    if text in ("True", "False"):
        return text.lower()
    if text == "inf":
        return "INFINITY"
    if kind in ("int[]", "int[]?"):
        return "{" + text.strip("()[]").rstrip(",") + "}"
    return text.replace("'", '"')


def name_of(arg: dict[str, Any]) -> str:
    return arg["name"] + "_" * (arg["name"] in KEYWORDS)


def parameters(row: dict[str, Any]) -> tuple[list[Param], list[str], bool]:
    """The parameters of an op, what is passed for each argument, and whether it takes options."""
    names = {arg["name"] for arg in row["args"]}
    is_factory = {"dtype", "device"} <= names
    params: list[Param] = []
    passed = []
    for arg in row["args"]:
        if arg["type"] == GENERATOR or arg["name"].startswith("_"):
            passed.append("detail::left_out" if arg["type"] == GENERATOR else literal(arg))
        elif is_factory and arg["name"] in ("dtype", "device"):
            passed.append(f"options.{arg['name']}_opt()")
        else:
            kind = TYPES[arg["type"]]
            if arg["takes_number"]:
                kind = kind.replace("Tensor", "Operand")
            params.append((kind, name_of(arg), literal(arg)))
            passed.append(name_of(arg))
    if is_factory:
        # Options stand before the order in memory, as in PyTorch.
        at = next((i for i, p in enumerate(params) if "MemoryFormat" in p[0]), len(params))
        params.insert(at, ("const TensorOptions&", "options", "{}"))
    return params, passed, is_factory


def without_ambiguity(params: list[Param], others: list[list[Param]]) -> list[Param] | None:
    """The parameters with fewer defaults, so that no call fits others too; None if all would."""
    required = 0
    for other in others:
        same = 0
        while same < min(len(params), len(other)) and params[same][0] == other[same][0]:
            same += 1
        least = max(sum(not p[2] for p in params), sum(not p[2] for p in other))
        if least > same:
            continue
        if same == len(params):
            return None
        required = max(required, same + 1)
    return [
        (kind, name, "" if i < required else text) for i, (kind, name, text) in enumerate(params)
    ]


def declared(params: list[Param]) -> str:
    return ", ".join(
        f"{kind} {name}" + (f" = {text}" if text else "") for kind, name, text in params
    )


def result_of(row: dict[str, Any]) -> str:
    kinds = [RETURNS[kind] for kind, _ in row["returns"]]
    return kinds[0] if len(kinds) == 1 else f"std::tuple<{', '.join(kinds)}>"


def rows() -> list[dict[str, Any]]:
    found = []
    for row in _C._op_table():
        module = row["home"].split()[0]
        is_old = row["overload"] == "scaled"  # add(input, alpha, other), which PyTorch left behind
        if module in MODULES and not row["name"].startswith("_") and not is_old:
            found.append(row | {"module": module})
    return found


class Overloads:
    """The forms that were written so far, by name."""

    def __init__(self) -> None:
        self.seen: dict[str, list[list[Param]]] = {}

    def add(self, form: str, params: list[Param]) -> list[Param] | None:
        others = self.seen.setdefault(form, [])
        # Where another form takes a number, this one takes a tensor.
        taken = {i for other in others for i, p in enumerate(other) if p[0] == "const Scalar&"}
        params = [
            (kind.replace("Operand", "Tensor") if i in taken else kind, name, text)
            for i, (kind, name, text) in enumerate(params)
        ]
        own = without_ambiguity(params, others)
        if own is not None:
            others.append(own)
        return own


class Form:
    """One op in one form."""

    def __init__(self, row: dict[str, Any]) -> None:
        self.row = row
        self.params, self.passed, self.is_factory = parameters(row)
        self.writes = bool(row["args"]) and row["args"][0]["type"] == "Tensor!"
        self.op = (
            f'static const detail::Op op("{row["module"]}", "{row["name"]}", "{row["overload"]}");'
        )

    def body(self, passed: list[str]) -> str:
        call = f"op.call<{result_of(self.row)}>({', '.join(passed)})"
        return (
            f"return detail::finished({call}, options);" if self.is_factory else f"return {call};"
        )

    def method(self, overloads: Overloads, suffix: str) -> str | None:
        """The definition of `name` or `name_` in class Tensor, unless another one has its place."""
        name = self.row["name"] + suffix
        own = overloads.add(name, self.params[1:])
        if own is None or name in OWN_METHODS:
            return None
        passed = ["*this", *self.passed[1:]]
        if suffix or self.writes:
            run = "call_inplace" if suffix else "call<Tensor>"
            done = f"op.{run}({', '.join(passed)}); return const_cast<Tensor&>(*this);"
            return f"Tensor& {name}({declared(own)}) const {{ {self.op} {done} }}"
        body = self.body(passed)
        return f"{result_of(self.row)} {name}({declared(own)}) const {{ {self.op} {body} }}"

    def functions(self, overloads: Overloads) -> Iterator[str]:
        """The definitions in namespace at."""
        name = MODULES[self.row["module"]] + self.row["name"]
        for params, passed in self.lengths():
            own = overloads.add(name, params)
            if own is not None:
                result, body = result_of(self.row), self.body(passed)
                yield f"inline {result} {name}({declared(own)}) {{ {self.op} {body} }}"

    def lengths(self) -> Iterator[tuple[list[Param], list[str]]]:
        """The parameters and what is passed; options may follow any that could be left out."""
        names = [name for _, name, _ in self.params]
        end = names.index("options") if self.is_factory else 0
        start = end
        while start > 0 and self.params[start - 1][2]:
            start -= 1
        for stop in range(start, end + 1):
            left_out = {name: text for _, name, text in self.params[stop:end]}
            given = [(kind, name, "") for kind, name, _ in self.params[:stop]]
            passed = [left_out.get(name, name) for name in self.passed]
            yield [*(given if self.is_factory else []), *self.params[end:]], passed

    def inplace_function(self, overloads: Overloads) -> str | None:
        name = MODULES[self.row["module"]] + self.row["name"] + "_"
        first = self.params[0][1]
        own = overloads.add(name, [("Tensor&", first, ""), *self.params[1:]])
        if own is None:
            return None
        done = f"op.call_inplace({', '.join(self.passed)}); return {first};"
        return f"inline Tensor& {name}({declared(own)}) {{ {self.op} {done} }}"


def written(title: str, definitions: list[str | None]) -> str:
    lines = [line for line in definitions if line is not None]
    return "\n".join([f"// {title} Written by tools/make_cpp_ops.py; do not edit.", "", *lines, ""])


def methods() -> str:
    overloads = Overloads()
    found = []
    for row in rows():
        form = Form(row)
        if row["method"]:
            found.append(form.method(overloads, ""))
            if row["inplace"] and not row["name"].endswith("_"):
                found.append(form.method(overloads, "_"))
    return written("The ops as methods of Tensor.", found)


def functions() -> str:
    overloads = Overloads()
    found = []
    for row in rows():
        form = Form(row)
        if row["function"]:
            found += form.functions(overloads)
            if row["inplace"] and not row["name"].endswith("_"):
                found.append(form.inplace_function(overloads))
    return written("The ops as functions of namespace at.", found)


FILES = {"op_methods.inc": methods, "op_functions.inc": functions}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail when stale")
    check = parser.parse_args().check
    stale = []
    for name, make in FILES.items():
        path, text = FOLDER / name, make()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not check:
            path.write_text(text, encoding="utf-8")
    if check and stale:
        print(f"stale: {', '.join(stale)}. Run: python tools/make_cpp_ops.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
