"""What must hold under stress: flat memory, clean refusals, threads, fork, interpreter exit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable

import numpy as np
import pytest
from grouping import each
from memory import resident_kb

import rushlight as torch
from rushlight import _C


@pytest.mark.not_sanitized("freed memory waits for a while before it is used again")
def test_ten_thousand_random_shapes_leave_memory_flat() -> None:
    generator = np.random.default_rng(0)

    def work(count: int) -> None:
        for rows, columns in generator.integers(1, 400, (count, 2)):
            x = torch.zeros(int(rows), int(columns))
            (x + 1).sum()

    work(2000)
    before = resident_kb()
    allocated = _C._memory_stats()["allocated"]
    work(10_000)
    assert resident_kb() - before < 20_000
    assert _C._memory_stats()["allocated"] <= allocated + 10_000


def test_the_cache_goes_back_on_request() -> None:
    x = torch.zeros(1_000_000)
    del x
    _C._empty_cache()
    assert _C._memory_stats()["cached"] < 4_000_000


@pytest.mark.parametrize(
    "shape", [(2**62, 4), (2**40, 2**40), (2**63 - 1,), (0, 2**62, 8), (2**62, 8, 0), (3, -1)]
)
def test_sizes_that_overflow_or_are_negative_raise(shape: tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError):
        torch.zeros(shape)


def test_sizes_beyond_64_bits_raise() -> None:
    with pytest.raises((RuntimeError, OverflowError, TypeError, ValueError)):
        torch.zeros(2**70)


def test_out_of_memory_raises_and_the_process_goes_on() -> None:
    with pytest.raises(torch.OutOfMemoryError, match="out of memory"):
        torch.zeros(2**50)
    assert torch.ones(3).sum().item() == 3.0


@each(
    "cut",
    [
        lambda x: x.unbind(),
        lambda x: x.split(1),
        lambda x: x.chunk(2**61),
        lambda x: x.tensor_split(2**61),
        lambda x: x.hsplit(2**61),
    ],
)
def test_a_tensor_is_not_cut_into_more_pieces_than_memory_holds(
    cut: Callable[[torch.Tensor], object],
) -> None:
    with pytest.raises(torch.OutOfMemoryError, match="no memory for .* tensors"):
        cut(torch.ones(1).expand(2**62))


def test_the_differences_of_nothing_need_no_step_each() -> None:
    assert torch.ones(0, 2**40).diff(2**39).shape == (0, 2**39)
    assert torch.ones(2, 0).diff(3).shape == (2, 0)


@each("pool", [torch.nn.functional.adaptive_max_pool2d, torch.nn.functional.adaptive_avg_pool2d])
def test_windows_are_not_counted_where_memory_cannot_hold_their_results(
    pool: Callable[..., torch.Tensor],
) -> None:
    with pytest.raises(torch.OutOfMemoryError):
        pool(torch.ones(1, 1, 1), (2**31 - 1, 2**16))


def test_the_largest_size_may_stand_beside_a_list_of_tensors() -> None:
    largest = torch.empty(2**63 - 1, dtype=torch.int8, device="meta")
    index = torch.zeros(3, dtype=torch.int64, device="meta")
    with pytest.raises(RuntimeError, match="overflow"):
        largest.index_put((index,), largest[:3])


def test_expanded_views_that_overflow_are_refused() -> None:
    with pytest.raises(RuntimeError):
        torch.zeros(1).expand(2**40, 2**40)
    with pytest.raises(RuntimeError, match="out of bounds for storage"):
        torch.zeros(4).as_strided((2, 3), (3, 1))
    with pytest.raises(RuntimeError):
        torch.zeros(4).as_strided((2,), (2**62,), 1)
    with pytest.raises(RuntimeError):
        torch.zeros(4).as_strided((2,), (-1,), 1)


@each(
    "call",
    [
        lambda x: torch.tensor(x.tolist()),
        lambda x: x.int(),
        lambda x: x.half(),
        lambda x: x.to(torch.complex64),
        lambda x: x.sum(),
        lambda x: x.cumsum(0),
        lambda x: x == torch.tensor(True),
        lambda x: x.nonzero(),
        lambda x: torch.arange(x.numel())[x],
        lambda x: x.sort(stable=True).indices,
        lambda x: x.mode().values,
        lambda x: x.reshape(20, 7).mode().values,
        lambda x: x.scatter_reduce(0, torch.arange(140) % 20, x, "prod"),
        lambda x: x.scatter_reduce(0, torch.arange(140) % 20, x, "amin", include_self=False),
        lambda x: x.index_add(0, torch.arange(140) % 20, x),
        lambda x: x.unique(),
    ],
)
def test_any_byte_but_zero_is_true(call: Callable[[torch.Tensor], torch.Tensor]) -> None:
    numbers = torch.tensor([2, 0, 190, 255, 1, 0, 3] * 20, dtype=torch.uint8)
    assert torch.equal(call(numbers.view(torch.bool)), call(numbers != 0))


def test_ops_in_threads_agree_with_one_thread() -> None:
    x = torch.arange(100_000.0)
    expected = (x * 2 + 1).sum().item()
    results: list[float] = []

    def work() -> None:
        for _ in range(20):
            results.append((x * 2 + 1).sum().item())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(results) == {expected}


def run(program: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_forked_child_computes_after_the_parent_used_threads() -> None:
    done = run(
        """
        import os
        import rushlight as torch
        x = torch.ones(1000, 1000)
        assert (x + x).sum().item() == 2e6
        child = os.fork()
        if child == 0:
            ok = (x + x).sum().item() == 2e6 and (x @ x)[0, 0].item() == 1000.0
            os._exit(0 if ok else 1)
        _, status = os.waitpid(child, 0)
        assert status == 0, status
        assert (x + x).sum().item() == 2e6
        """
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("given", "spins"),
    [({}, "10000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "passive"}, "0")],
)
def test_waiting_threads_sleep_soon_unless_the_user_says_otherwise(
    given: dict[str, str], spins: str
) -> None:
    names = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    unset = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", f"import os, rushlight; print([os.getenv(n) for n in {names}])"],
        env=unset | {"OMP_DISPLAY_ENV": "verbose"} | given,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert f"GOMP_SPINCOUNT = '{spins}'" in done.stderr  # libgomp says what it has read
    assert done.stdout.strip() == str([given.get(name) for name in names])


def test_tensors_alive_at_exit_do_no_harm() -> None:
    done = run(
        """
        import rushlight as torch
        x = torch.ones(3, requires_grad=True)
        y = (x * 2).sum()
        x.register_hook(lambda g: g)
        y.backward(retain_graph=True)
        x.grad.note = y
        """
    )
    assert done.returncode == 0 and done.stderr == ""


def test_a_wrong_instruction_set_is_refused_at_import() -> None:
    done = subprocess.run(
        [sys.executable, "-c", "import rushlight"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "RUSHLIGHT_CPU": "v9"},
    )
    assert done.returncode != 0 and "RUSHLIGHT_CPU" in done.stderr


@pytest.mark.parametrize("isa", ["baseline", "v3"])
def test_every_instruction_set_gives_the_same_digits(isa: str) -> None:
    program = """
        import rushlight as torch
        torch.manual_seed(0)
        x = torch.randn(1000)
        y = (x * 3 + 1).relu().sum() + (x * x).mean()
        print(y.item().hex(), torch.rand(3).tolist())
    """
    lowered = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "RUSHLIGHT_CPU": isa},
    )
    assert lowered.stdout == run(program).stdout


@pytest.mark.skipif(
    torch.backends.cpu.get_cpu_capability() == "DEFAULT", reason="the processor has one set"
)
def test_sets_with_fused_products_give_the_same_bits() -> None:
    program = """
        import rushlight as torch
        names = "sin cos exp expm1 sinh cosh asin acos atan log log2 log10 log1p".split()
        x = torch.linspace(-50, 50, 1003)
        for y in (x, x.double(), x / 50, x.double() / 50):
            results = [getattr(y, name)() for name in names] + [y.atan2(y.flip(0) + 1)]
            for f in results + ([y.tanh()] if y.dtype == torch.float64 else []):
                print(f.nan_to_num(7).view(torch.uint8).tolist())
    """
    lowered = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "RUSHLIGHT_CPU": "v3"},
    )
    assert lowered.stdout == run(program).stdout


FLOATS = [-1.5, 300.5, -300.5, 3e9, -3e9, 1e19, -1e19, 3e19, float("inf"), float("nan")] * 5


def integer_of(x: float, bits: int, signed: bool) -> int:
    """The whole part as int32, where that holds the dtype, or int64; its least number beyond it."""
    middle = 1 << (31 if bits < 32 or (signed and bits == 32) else 63)
    if bits == 64 and not signed and x >= middle:
        return int(x) if x < 2 * middle else 0
    whole = int(x) if -middle <= x < middle else -middle
    rest = whole % (1 << bits)  # integers wrap around
    return rest - (1 << bits) if signed and rest >> (bits - 1) else rest


@pytest.mark.parametrize("isa", ["baseline", "v3", "v4"])
def test_floats_out_of_range_become_the_same_integers_everywhere(isa: str) -> None:
    program = f"""
        import rushlight as torch
        x = torch.tensor({FLOATS}, dtype=torch.float64)
        for bits in (8, 16, 32, 64):
            for name in (f"int{{bits}}", f"uint{{bits}}"):
                print(x.to(getattr(torch, name)).tolist())
    """.replace("inf", "float('inf')").replace("nan", "float('nan')")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "RUSHLIGHT_CPU": isa},
    )
    expected = [
        [integer_of(x, bits, signed) for x in FLOATS]
        for bits in (8, 16, 32, 64)
        for signed in (True, False)
    ]
    assert [json.loads(line) for line in done.stdout.splitlines()] == expected


def test_import_is_light() -> None:
    done = run(
        """
        import sys
        before = set(sys.modules)
        import rushlight
        print(*(name for name in set(sys.modules) - before if not name.startswith("rushlight")))
        """
    )
    assert set(done.stdout.split()) <= {"__future__", "atexit", "math"}  # of a few lines, or in C


def test_wrong_arguments_name_the_argument() -> None:
    x = torch.ones(2)
    with pytest.raises(
        TypeError, match=r"softplus\(\): argument 'beta' \(position 2\) must be float, not str"
    ):
        torch.nn.functional.softplus(x, "a")
    with pytest.raises(TypeError, match="unexpected keyword argument 'color'"):
        torch.exp(x, color=1)
    with pytest.raises(TypeError, match="missing required argument"):
        torch.exp()
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        torch.exp([1.0])
