"""Views, in-place writes, history and grad modes follow PyTorch's rules, program by program.

The programs are in programs/, a few statements each, between lines of dashes; T is the library.
Compared are: after every statement, its value, or the class of what it raised; at the end, every
tensor's values, flags, version and gradient.
"""

import ast
import warnings
from pathlib import Path

import pytest

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")


START = """
x = T.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
w = T.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
b = x * 1
m = w * 1
p = T.tensor([5.0, 6.0, 7.0, 8.0])
"""
FOLDER = Path(__file__).parent / "programs"
PROGRAMS = [
    p.strip() for file in sorted(FOLDER.iterdir()) for p in file.read_text().split("\n---\n")
]


def described(value, library):
    if isinstance(value, (tuple, list)):
        return [described(item, library) for item in value]
    if isinstance(value, library.Tensor):
        if value.is_meta:
            return tuple(value.shape)
        values = [round(v, 3) if isinstance(v, float) else v for v in flat(value)]
        return tuple(value.shape), str(value.dtype), values
    if isinstance(value, float):
        return round(value, 4)
    return value if isinstance(value, (bool, int, str, type(None))) else type(value).__name__


def flat(tensor):
    values = tensor.detach().reshape(-1)
    if tensor.is_complex():
        values = pytorch_real(values)
    return values.tolist()


def pytorch_real(values):
    module = torch if isinstance(values, torch.Tensor) else pytorch
    return module.view_as_real(values.clone()).reshape(-1)


def attempt(read):
    try:
        return read()
    except Exception as error:
        return type(error).__name__


def state_of(tensor, library):
    """What the tape knows of a tensor."""
    readers = [
        lambda: tensor,
        lambda: tensor.requires_grad,
        lambda: tensor.is_leaf,
        lambda: tensor.output_nr,
        lambda: tensor._is_view(),
        lambda: None if tensor.is_inference() else tensor._version,
        lambda: tensor.grad if tensor.is_leaf or tensor.retains_grad else None,
    ]
    return [attempt(lambda read=read: described(read(), library)) for read in readers]


def run(program, library):
    names = {"T": library}
    trace = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(START, names)
        for statement in ast.parse(program).body:
            source = ast.unparse(statement)
            try:
                if isinstance(statement, ast.Expr):
                    trace.append((source, described(eval(source, names), library)))
                else:
                    exec(source, names)
            except Exception as error:
                trace.append((source, type(error).__name__))
            library.set_grad_enabled(True)
        for name, value in names.items():
            if isinstance(value, library.Tensor):
                trace.append((name, state_of(value, library)))
    return trace


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_behave_the_same(program) -> None:
    assert run(program, torch) == run(program, pytorch)
