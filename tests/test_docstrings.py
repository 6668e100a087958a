"""Every example in a docstring of the package runs and prints what it says.

The docstrings of ops are in the op table; tests/ops/test_op_docs.py runs theirs.
"""

import ast
import doctest
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import rushlight as torch
from rushlight.vision import transforms, tv_tensors
from rushlight.vision.transforms import v2

ROOT = Path(torch.__file__).parent
FILES = [path for path in sorted(ROOT.rglob("*.py")) if ">>> " in path.read_text()]
NAMES = {  # what examples use without an import
    "torch": torch,
    "transforms": transforms,
    "tv_tensors": tv_tensors,
    "v2": v2,
    "xp": torch.array_api,
}


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def examples(path: Path) -> Iterator[doctest.DocTest]:
    """The examples of each docstring in a file, whatever its class says its module is."""
    names = vars(importlib.import_module(module_of(path))) | NAMES
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            text = ast.get_docstring(node) or ""
            name = getattr(node, "name", path.stem)
            yield doctest.DocTestParser().get_doctest(text, dict(names), name, str(path), None)


@pytest.mark.filterwarnings("ignore:Please use quant_min and quant_max:UserWarning")
@pytest.mark.parametrize("path", FILES, ids=module_of)
def test_examples_print_what_they_say(path: Path) -> None:
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in examples(path):
        runner.run(example)
    assert runner.failures == 0


@pytest.mark.parametrize("name", sorted(torch.nn.modules.__all__))
def test_every_layer_has_an_example(name: str) -> None:
    assert ">>> " in getattr(torch.nn, name).__doc__
