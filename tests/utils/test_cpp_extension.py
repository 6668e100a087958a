"""Extensions in C++: one is compiled as it would be for PyTorch, and asked for all that it does."""

import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rushlight as torch
from rushlight import Tensor
from rushlight.utils import cpp_extension

SOURCE = Path(__file__).with_name("extension.cpp")
X = torch.arange(12.0).view(3, 4) - 5
Y = torch.ones(3, 4) * 2


@pytest.fixture(scope="module")
def extension() -> Any:
    return cpp_extension.load("extension", str(SOURCE), extra_cflags=["-O0"])


def assert_same(ours: Any, expected: Any) -> None:
    assert len(ours) == len(expected)
    for a, b in zip(ours, expected, strict=True):
        torch.testing.assert_close(a, b)


def test_calls_ops(extension: Any) -> None:
    s = X.sigmoid()
    torch.testing.assert_close(extension.sigmoid_slope(X), (1 - s) * s)
    weights, bias, h = torch.ones(6, 6) * 0.1, torch.zeros(6), torch.ones(3, 2)
    gates = torch.addmm(bias, torch.cat([h, X], 1), weights.T).chunk(3, 1)
    new_cell = h + torch.nn.functional.elu(gates[2]) * gates[0].sigmoid()
    expected = [new_cell.tanh() * gates[1].sigmoid(), new_cell]
    assert_same(extension.cell(X, weights, bias, h, h), expected)
    assert_same(extension.largest(X), X.max(1))
    expected = [
        X.sum(),
        X.sum(1),
        X.sum((0, 1)),
        X.sum(1, True),
        X.mean(),
        X.std(),
        X.norm(),
        X.argmax(1),
        X.sort(1).values,
        X.logsumexp(1),
    ]
    assert_same(extension.reductions(X), expected)


def test_computes_with_operators(extension: Any) -> None:
    changed = ((X + Y) * 2 - 1).clamp(-1, 1)
    both = (X > 0) & (Y > 0)
    expected = [X + 1, 2.5 - X, X / Y, -X, X == Y, X > 0, both, torch.where(X > Y, X, Y), changed]
    assert_same(extension.arithmetic(X, Y), expected)


def test_indexes(extension: Any) -> None:
    y = X.clone()
    y[0, :2] = -1
    y[..., 3] = X[:, 0]
    expected = [
        X[1],
        X[:, 1:3],
        X[::2],
        X[X > 0],
        X.narrow(1, 0, 2),
        X.view(-1),
        X.unsqueeze(0).expand(2, -1, -1),
        y,
    ]
    assert_same(extension.parts(X), expected)


def test_makes_tensors(extension: Any) -> None:
    expected = [
        torch.zeros(2, 3),
        torch.full((2,), 7),
        torch.arange(5),
        torch.arange(0, 1, 0.25),
        torch.ones_like(X),
        torch.eye(2),
        torch.zeros(2),
        torch.linspace(0, 1, 3, dtype=torch.float64),
        torch.tensor([1, 2, 3]),
        torch.tensor([0.5, 1.5]),
        torch.zeros(1),
    ]
    made = extension.made(X)
    assert_same(made, expected)
    assert [tensor.requires_grad for tensor in made] == [False] * 10 + [True]


def test_reads_and_writes_elements(extension: Any) -> None:
    torch.testing.assert_close(extension.multiply_add(X.T, Y.T, c=1.5), X.T * Y.T + 1.5)
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        sums = extension.row_sums(X.to(dtype).T)
        torch.testing.assert_close(sums, X.T.sum(1).to(dtype))
    assert extension.work_in_parallel(X) == X.sum().item() * 120


def test_shares_memory_of_its_own(extension: Any) -> None:
    before = extension.freed()
    tensor = extension.own_memory()
    part = tensor[1]
    del tensor
    assert part.tolist() == [3, 4, 5] and extension.freed() == before
    del part
    assert extension.freed() == before + 1


def test_assigns_to_parts(extension: Any) -> None:
    y = torch.zeros(3, 4)
    y[0], y[1], y[2, 3] = X[1], 2.5, 9
    y[0] += 1
    assert_same([extension.assigned(X)], [y])


def test_names_types_as_older_programs_do(extension: Any) -> None:
    assert extension.types(X) == "Float 4 Float cpu 1 0 1 6"
    assert extension.types(X.double()[0]) == "Double 8 Double cpu 1 0 1 6"


def test_functions_take_and_give_undefined_tensors(extension: Any) -> None:
    x = X.clone().requires_grad_()
    first, second = extension.either(x, None)
    assert second is None
    first.sum().backward()
    torch.testing.assert_close(x.grad, torch.full_like(X, 2))


def test_threads_begin_at_once() -> None:
    # What is looked up once is not yet: in a new process all threads ask for it.
    program = """
        import sys, threading
        from rushlight.utils.cpp_extension import load
        import rushlight as torch
        module = load("extension", sys.argv[1], extra_cflags=["-O0"])
        threads = [
            threading.Thread(target=f)
            for f in (module.in_threads, lambda: module.scale(torch.ones(2), 2.0)) * 4
        ]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(SOURCE)]
    subprocess.run(command, check=True, timeout=60)


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (X, "2 [3, 4] [4, 1] 4 12 Float cpu 1 0 1 4 48"),
        (X.T.requires_grad_(), "2 [4, 3] [1, 4] 3 12 Float cpu 0 1 1 4 48"),
        (torch.zeros(2, 0, dtype=torch.uint8), "2 [2, 0] [1, 1] 0 0 Byte cpu 1 0 1 1 0"),
        (torch.zeros(1, dtype=torch.complex64), "1 [1] [1] 1 1 ComplexFloat cpu 1 0 1 8 8"),
        (torch.empty(2, 3, device="meta"), "2 [2, 3] [3, 1] 3 6 Float meta 1 0 1 4 24"),
    ],
)
def test_sees_what_tensors_are_like(extension: Any, tensor: Tensor, text: str) -> None:
    assert extension.described(tensor) == text


def test_takes_arguments_of_all_kinds(extension: Any) -> None:
    assert [extension.is_given(x) for x in (None, X)] == [False, True]
    assert [extension.number(x) for x in (3, True, 0.5)] == [3, 1, 0.5]
    assert extension.summed(X, [0, 1]) == X.sum()
    assert_same([extension.joined([X, Y])], [torch.stack([X, Y])])
    for dtype in (torch.int32, torch.bool, torch.bfloat16, torch.complex64):
        assert extension.converted(X, dtype).dtype is dtype
    assert_same([extension.without_lock(X)], [extension.sigmoid_slope(X)])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m: m.fail("value"), ValueError, "a bad value: 3"),
        (lambda m: m.fail("index"), IndexError, "a bad index"),
        (lambda m: m.fail("type"), TypeError, "a bad type"),
        (lambda m: m.fail("not implemented"), NotImplementedError, "not there"),
        (lambda m: m.fail("dim"), IndexError, "sum: Dimension out of range"),
        (lambda m: m.fail("thread"), RuntimeError, "in a thread"),
        (lambda m: m.fail("caught"), RuntimeError, "caught"),
        (lambda m: m.fail("index in a thread"), IndexError, "index 5 is out of bounds"),
        (lambda m: m.fail("undefined"), TypeError, "'other' (position 2) is an undefined tensor"),
        (lambda m: m.fail("undefined method"), RuntimeError, "the tensor is undefined"),
        (lambda m: m.fail("no memory"), ValueError, "there is no memory at address 0"),
        (lambda m: m.fail("compare"), RuntimeError, "but got 2 and 3"),
        (lambda m: m.fail("nothing saved"), RuntimeError, "holds nothing"),
        (lambda m: m.number(2**70), TypeError, "incompatible function arguments"),
        (lambda m: m.doubled({"x": None}), TypeError, "incompatible function arguments"),
        (lambda m: m.multiply_add(X, Y[:2]), RuntimeError, "sizes differ: [3, 4] and [2, 4]"),
        (lambda m: m.multiply_add(X.double(), Y), RuntimeError, "a.dtype() == at::kFloat"),
        (
            lambda m: m.row_sums(X.int()),
            NotImplementedError,
            "\"row_sums\" not implemented for 'Int'",
        ),
        (lambda m: m.row_sums(X[0]), RuntimeError, "expected 2 dims but the tensor has 1"),
        (lambda m: m.row_sums(X.to_sparse()), NotImplementedError, "sparse"),
        (lambda m: m.described(X[0, 0]), IndexError, "Dimension out of range"),
        (lambda m: m.sigmoid_slope(None), TypeError, "incompatible function arguments"),
        (lambda m: m.sigmoid_slope(3), TypeError, "incompatible function arguments"),
        (lambda m: m.joined([X, 3]), TypeError, "incompatible function arguments"),
    ],
)
def test_errors_keep_their_class(
    extension: Any, call: Callable[[Any], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=re.escape(text)):
        call(extension)


def test_gradients_flow_through_it(extension: Any) -> None:
    x = X.clone().requires_grad_()
    extension.sigmoid_slope(x).sum().backward()
    s = X.sigmoid()
    torch.testing.assert_close(x.grad, s * (1 - s) * (1 - 2 * s))
    assert not extension.detached(x).requires_grad
    x.grad = None
    y = extension.scale(x, 3.0)
    torch.testing.assert_close(y, X * X * 3)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 6 * X)
    torch.testing.assert_close(extension.slope(X), 2 * X)


def test_adds_operators(extension: Any) -> None:
    ops = torch.ops.cpp_extension_test
    torch.testing.assert_close(ops.thrice(X), X * 3)
    torch.testing.assert_close(ops.shifted(X, 0.5, None), X + 0.5)
    torch.testing.assert_close(ops.shifted(X, 0.5, 3), X + 1.5)
    torch.testing.assert_close(ops.halved(X), X / 2)
    assert ops.halved(X.to("meta")).shape == X.shape
    older = torch.ops.cpp_extension_older
    doubled = older.doubled({"x": X, "y": Y})
    assert list(doubled) == ["x", "y"]
    torch.testing.assert_close(doubled["y"], Y * 2)
    assert older.version() == 3


# How a library is made and kept is seen in a fraction of the time that the headers take.
PROGRAM = """
    #include <Python.h>
    #include "number.h"
    static PyObject* number(PyObject*, PyObject*) { return PyLong_FromLong(NUMBER); }
    static PyMethodDef methods[] = {{"number", number, METH_NOARGS, NULL}, {}};
    static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "changing", NULL, -1, methods};
    PyMODINIT_FUNC PyInit_changing(void) { return PyModule_Create(&definition); }
"""


AGAIN = """
    import sys
    from rushlight.utils.cpp_extension import load
    source, folder = sys.argv[1:]
    module = load("changing", source, extra_cflags=["-O0"], build_directory=folder)
    assert module.number() == 2
"""


def test_builds_anew_when_a_header_changes(tmp_path: Path) -> None:
    source, header = tmp_path / "a program.cpp", tmp_path / "number.h"
    source.write_text(textwrap.dedent(PROGRAM))
    folder = tmp_path / "build"
    libraries = []
    for number in (1, 1, 2):
        header.write_text(f"#define NUMBER {number}\n")
        module = cpp_extension.load(
            "changing", [str(source)], extra_cflags=["-O0"], build_directory=str(folder)
        )
        assert module.number() == number
        libraries.append(module.__file__)
    assert libraries[0] == libraries[1] != libraries[2]
    assert [str(path) for path in folder.glob("*.so")] == [libraries[2]]
    library = Path(libraries[2])
    library.unlink()  # which is in use here, so it is not emptied itself
    library.write_bytes(b"")
    (folder / "changing.json").write_text('{"inputs": 3}')
    program = [sys.executable, "-c", textwrap.dedent(AGAIN), str(source), str(folder)]
    subprocess.run(program, check=True)
    library.write_bytes(b"")
    subprocess.run(program, check=True)
    header.write_text("")
    with pytest.raises(RuntimeError, match=r"(?s)Error building extension 'changing'.*NUMBER"):
        cpp_extension.load("changing", str(source), build_directory=str(folder))


WITHOUT_PYBIND11 = """
    #include <Python.h>
    #include <complex>
    using namespace std;  // before the headers, as some programs have it
    #include <torch/all.h>

    extern "C" {
    PyObject* PyInit_number(void) {
      static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "number", NULL, -1, NULL};
      return PyModule_Create(&definition);
    }
    }
    int64_t number() { return 5; }
    TORCH_LIBRARY(cpp_extension_number, m) { m.def("number", &number); }
"""


def test_processes_that_build_in_one_folder_wait_for_each_other(tmp_path: Path) -> None:
    program = """
        import sys
        from rushlight.utils.cpp_extension import load_inline
        folder, number, source = sys.argv[1:]
        module = load_inline(
            "changing",
            source.replace('#include "number.h"', "#define NUMBER " + number),
            extra_cflags=["-O0"],
            build_directory=folder,
            no_implicit_headers=True,
        )
        assert module.number() == int(number)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    source = textwrap.dedent(PROGRAM)
    running = [subprocess.Popen([*command, number, source]) for number in ("1", "2")]
    assert [process.wait() for process in running] == [0, 0]


def test_a_program_of_setuptools_builds_one(tmp_path: Path) -> None:
    (tmp_path / "number.cpp").write_text(textwrap.dedent(WITHOUT_PYBIND11))
    (tmp_path / "setup.py").write_text(
        textwrap.dedent("""
            from setuptools import setup
            from rushlight.utils.cpp_extension import BuildExtension, CppExtension

            setup(
                name="number",
                ext_modules=[
                    CppExtension(
                        "number",
                        ["number.cpp"],
                        extra_compile_args={
                            "cxx": ["-O0", "-std=c++14", "-DPy_LIMITED_API=0x03090000"]
                        },
                        py_limited_api=True,
                    )
                ],
                cmdclass={"build_ext": BuildExtension.with_options(no_python_abi_suffix=True)},
            )
        """)
    )
    subprocess.run(
        [sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=tmp_path, check=True
    )
    assert (tmp_path / "number.so").exists()
    program = """
        import number
        import rushlight as torch
        assert torch.ops.cpp_extension_number.number() == 5
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], cwd=tmp_path, check=True)


def test_refuses_what_it_cannot_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for refuse in (
        lambda: cpp_extension.load("x", "kernel.cu"),
        lambda: cpp_extension.load_inline("x", "", cuda_sources="__global__ void f() {}"),
        lambda: cpp_extension.CUDAExtension("x", ["kernel.cu"]),
    ):
        with pytest.raises(NotImplementedError, match="_compile_kernel"):
            refuse()
    with pytest.raises(FileNotFoundError, match="no file"):
        cpp_extension.load("x", "missing.cpp", build_directory=str(tmp_path))
    monkeypatch.setitem(sys.modules, "pybind11", None)
    with pytest.raises(RuntimeError, match="pip install pybind11"):
        cpp_extension.include_paths()
    monkeypatch.setenv("CXX", "no-such-compiler")
    with pytest.raises(RuntimeError, match="apt-get install"):
        cpp_extension._version_text(cpp_extension.get_cxx_compiler())
