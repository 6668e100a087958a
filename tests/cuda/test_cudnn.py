"""Convolutions by cuDNN: the numbers of the CPU, the switches, plans that are kept, and errors.

The shim's cuDNN has engines of all traits, counts their runs and refuses wrong arguments. It fails
when an engine is taken that Rushlight promises not to take.
"""

from __future__ import annotations

import ctypes
import gc
import os
import threading
from typing import Any

import numpy as np
import pytest

import rushlight as torch

F = torch.nn.functional
cudnn = torch.backends.cudnn
pytestmark = pytest.mark.skipif(not cudnn.is_available(), reason="there is no cuDNN, nor shim")

_SHIM = os.environ.get("RUSHLIGHT_CUDNN", "")
on_shim = pytest.mark.skipif("shim" not in _SHIM, reason="only the shim counts")
_SLOW, _FAST, _EXACT = 6, 7, 8  # the first two round float32 to TF32
TOLERANCE = {torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def counts() -> list[int]:
    library = ctypes.CDLL(_SHIM)
    return [library.shim_cudnn_runs(engine) for engine in (_SLOW, _FAST, _EXACT)]


def plans() -> int:
    return ctypes.CDLL(_SHIM).shim_cudnn_plans()


class Runs:
    """What the engines ran for since it was made."""

    def __init__(self) -> None:
        self.before = counts()

    def __call__(self) -> list[int]:
        return [now - before for now, before in zip(counts(), self.before, strict=True)]


@pytest.fixture(autouse=True)
def exact() -> Any:
    """Without TF32, but for the tests that turn it on."""
    with cudnn.flags(enabled=True, allow_tf32=False):
        yield


def numbers(*shape: int, dtype: Any = torch.float32, seed: int = 0) -> Any:
    generator = np.random.default_rng([seed, *shape])
    return torch.tensor(generator.uniform(-1, 1, shape)).to(dtype)


def worked(device: str, function: Any, operands: list[Any], **options: Any) -> list[Any]:
    """The result and the gradients of all operands."""
    points = [t.to(device).requires_grad_() for t in operands]
    y = function(*points, **options)
    g = numbers(*y.shape, dtype=y.dtype, seed=7).to(device)
    return [y.detach(), *torch.autograd.grad(y, points, g)]


def assert_close(on_cuda: list[Any], on_cpu: list[Any], tolerance: float | None = None) -> None:
    for mine, reference in zip(on_cuda, on_cpu, strict=True):
        assert mine.device.type == "cuda" and mine.stride() == reference.stride()
        expected = reference.to(torch.float64).numpy()
        limit = (tolerance or TOLERANCE[mine.dtype]) * max(1.0, abs(expected).max(initial=0))
        np.testing.assert_allclose(mine.cpu().to(torch.float64).numpy(), expected, 0, limit)


CASES: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "2d": (F.conv2d, (2, 16, 14, 13), (32, 16, 3, 3), {"padding": 1}),
    "strides": (F.conv2d, (2, 3, 47, 40), (40, 3, 7, 5), {"stride": (2, 1), "padding": (3, 2)}),
    "groups": (F.conv2d, (3, 24, 21, 20), (48, 8, 3, 3), {"groups": 3, "dilation": 2}),
    "pointwise": (F.conv2d, (3, 70, 9, 9), (68, 70, 1, 1), {}),
    "uneven": (F.conv2d, (2, 16, 14, 14), (32, 16, 4, 4), {"padding": "same"}),
    "few in groups": (F.conv2d, (2, 64, 24, 24), (64, 4, 3, 3), {"groups": 16}),
    "1d": (F.conv1d, (2, 32, 300), (32, 32, 4), {"stride": 2, "padding": 3}),
    "1d grouped": (F.conv1d, (2, 32, 400), (64, 16, 3), {"groups": 2, "dilation": 3}),
    "3d": (F.conv3d, (2, 8, 9, 10, 11), (8, 8, 3, 2, 3), {"stride": (1, 2, 1), "padding": 1}),
    "turned": (
        F.conv_transpose2d, (2, 24, 14, 13), (24, 16, 3, 3),
        {"stride": 2, "padding": 1, "output_padding": 1},
    ),
    "turned groups": (F.conv_transpose2d, (2, 24, 20, 20), (24, 16, 3, 3), {"groups": 2}),
    "turned 1d": (F.conv_transpose1d, (2, 32, 90), (32, 32, 6), {"stride": 3, "dilation": 2}),
    "turned 3d": (F.conv_transpose3d, (1, 16, 6, 7, 8), (16, 12, 3, 3, 3), {"stride": 2}),
}  # fmt: skip


@pytest.mark.parametrize("form", ["first", "last", "weight last"])
@pytest.mark.parametrize("name", CASES)
def test_convolutions_and_gradients_are_those_of_the_cpu(name: str, form: str) -> None:
    function, size, filters, options = CASES[name]
    channels = filters[1] * options.get("groups", 1) if "turned" in name else filters[0]
    x, w, bias = numbers(*size), numbers(*filters), numbers(channels)
    if form != "first":
        if len(size) == 3:
            pytest.skip("sequences have no channels_last")
        memory_format = torch.channels_last if len(size) == 4 else torch.channels_last_3d
        w = w.to(memory_format=memory_format)
        if form == "last":
            x = x.to(memory_format=memory_format)
    runs = Runs() if _SHIM else None
    mine = worked("cuda", function, [x, w, bias], **options)
    assert_close(mine, worked("cpu", function, [x, w, bias], **options))
    if runs:
        assert runs() == [0, 0, 3]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_halves_are_summed_in_float32(dtype: Any) -> None:
    operands = [numbers(2, 32, 16, 16), numbers(32, 32, 3, 3), numbers(32)]
    mine = worked("cuda", F.conv2d, [t.to(dtype) for t in operands], padding=1)
    rounded = [t.to(dtype).to(torch.float32) for t in operands]
    reference = [t.to(dtype) for t in worked("cpu", F.conv2d, rounded, padding=1)]
    assert_close(mine, reference)


def test_gradients_of_gradients() -> None:
    def second(device: str) -> list[Any]:
        x, w = (
            t.to(device).requires_grad_() for t in (numbers(2, 16, 12, 12), numbers(32, 16, 3, 3))
        )
        y = F.conv2d(x, w, padding=1)
        of_x, of_w = torch.autograd.grad((y * y).sum(), (x, w), create_graph=True)
        return list(torch.autograd.grad((of_x * of_x).sum() + (of_w * of_w).sum(), (x, w)))

    assert_close(second("cuda"), second("cpu"))


def test_operands_may_lie_in_any_order() -> None:
    x, w = numbers(16, 2, 28, 15), numbers(3, 3, 32, 16).permute(2, 3, 0, 1)
    views = {
        "strides": lambda x: x.transpose(0, 1)[:, :, ::2],
        "expanded": lambda x: x[:, :1].transpose(0, 1).expand(3, 16, 28, 15),
        "misaligned": lambda x: x.flatten()[3 : 3 + 2 * 16 * 14 * 14].view(2, 16, 14, 14),
    }
    for view in views.values():
        on_cuda, on_cpu = F.conv2d(view(x.cuda()), w.cuda()), F.conv2d(view(x), w)
        assert_close([on_cuda.contiguous()], [on_cpu.contiguous()])


def as_tf32(x: Any) -> Any:
    bits = x.numpy().view(np.uint32)
    rounded = (bits + 0xFFF + (bits >> 13 & 1)) & ~np.uint32(0x1FFF)
    return torch.tensor(rounded.view(np.float32))


@on_shim
def test_tf32_is_the_default_and_can_be_turned_off() -> None:
    x, w = numbers(2, 16, 14, 14), numbers(32, 16, 3, 3)
    exact, rounded = F.conv2d(x, w), F.conv2d(as_tf32(x), as_tf32(w))

    def check(uses_tf32: bool) -> None:
        y = F.conv2d(x.cuda(), w.cuda())
        if _SHIM:
            assert_close([y], [rounded if uses_tf32 else exact], 1e-6)
        else:  # a GPU may also cut digits off
            assert_close([y], [exact], 2e-3 if uses_tf32 else 1e-5)

    check(False)
    before = cudnn.conv.fp32_precision
    try:
        with cudnn.flags(enabled=True):  # allow_tf32=True is its default
            check(True)
        check(False)
        cudnn.conv.fp32_precision = "tf32"
        check(True)
        cudnn.conv.fp32_precision = "ieee"
        check(False)
        cudnn.conv.fp32_precision = "none"
        torch.backends.fp32_precision = "tf32"
        check(True)
    finally:
        torch.backends.fp32_precision = "none"
        cudnn.conv.fp32_precision = before


@on_shim
def test_what_stays_with_our_own_kernels() -> None:
    runs = Runs()
    cases: list[tuple[tuple[int, ...], tuple[int, ...], Any, dict[str, Any]]] = [
        ((1, 3, 8, 8), (4, 3, 3, 3), torch.float32, {}),  # little work
        ((2, 16, 14, 14), (32, 16, 3, 3), torch.float64, {}),
        ((4, 64, 30, 30), (64, 1, 3, 3), torch.float32, {"groups": 64}),
        ((32, 32, 13, 3), (64, 32, 3, 3), torch.float32, {"stride": 10}),  # the shim refuses
        ((0, 16, 14, 14), (32, 16, 3, 3), torch.float32, {}),
    ]
    for size, filters, dtype, options in cases:
        operands = [numbers(*size, dtype=dtype), numbers(*filters, dtype=dtype)]
        mine = worked("cuda", F.conv2d, operands, **options)
        assert_close(mine, worked("cpu", F.conv2d, operands, **options), 1e-4)
    with cudnn.flags(enabled=False):
        operands = [numbers(2, 16, 14, 14), numbers(32, 16, 3, 3)]
        assert_close(worked("cuda", F.conv2d, operands), worked("cpu", F.conv2d, operands))
    assert runs() == [0, 0, 0]


@on_shim
def test_plans_are_found_once_and_their_number_is_bounded() -> None:
    w = numbers(64, 64, 1).cuda()
    inputs = numbers(1, 64, 260).cuda()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        expected = F.conv1d(inputs, w).cpu()  # the warm-up
        graph = torch.cuda.CUDAGraph()
        graph.capture_begin()
        y = F.conv1d(inputs, w)
        graph.capture_end()
    before = plans()
    for _ in range(3):
        F.conv1d(inputs, w)
    assert plans() == before
    for dilation in range(2, 2 + 512):
        F.conv1d(inputs, w, dilation=dilation)
    assert plans() in (512, 513)  # that of the graph, too, whose code it goes on to launch
    y.zero_()
    graph.replay()
    assert torch.equal(y.cpu(), expected)


@on_shim
def test_benchmark_takes_the_fastest_engine_and_remembers_it() -> None:
    x, w = numbers(2, 16, 14, 15).cuda(), numbers(32, 16, 3, 3).cuda()

    def runs_of_a_call(**flags: Any) -> list[int]:
        runs = Runs()
        with cudnn.flags(enabled=True, **flags):
            F.conv2d(x, w)
        return runs()

    tried = runs_of_a_call(benchmark=True)
    assert sorted(tried) == [4, 4, 5] and tried[0] == 4  # not the slow one
    remembered = runs_of_a_call(benchmark=True)
    assert remembered == [count - 4 for count in tried]
    assert runs_of_a_call(benchmark=True, benchmark_limit=1) == [5, 0, 0]
    assert runs_of_a_call(benchmark=True, benchmark_limit=0, allow_tf32=False) == [0, 0, 5]
    assert runs_of_a_call(deterministic=True) == [1, 0, 0]


@pytest.mark.parametrize("benchmark", [False, True])
def test_a_training_step_is_captured(benchmark: bool) -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Conv2d(8, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Conv2d(32, 16, 3)
    ).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
    images = numbers(2, 8, 16, 16).cuda()

    def step() -> Any:
        optimizer.zero_grad(set_to_none=True)
        loss = net(images).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    # What begins in the capture takes the heuristics' choice, for nothing can be timed.
    with cudnn.flags(enabled=True, benchmark=benchmark, allow_tf32=False):
        stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), cudnn.flags(enabled=True, allow_tf32=False):
            step()
        torch.cuda.synchronize()
        state = {name: value.clone() for name, value in net.state_dict().items()}
        with torch.cuda.graph(graph):
            loss = step()
        replayed = []
        for _ in range(3):
            graph.replay()
            replayed.append(loss.item())
        net.load_state_dict(state)
        with cudnn.flags(enabled=True, allow_tf32=False):
            assert replayed == [step().item() for _ in range(3)]


def test_streams_threads_and_devices() -> None:
    x, w = numbers(2, 16, 14, 14), numbers(32, 16, 3, 3)
    expected = F.conv2d(x, w)
    results: list[Any] = []

    def work(device: int) -> None:
        with torch.cuda.device(device), torch.cuda.stream(torch.cuda.Stream()):
            y = F.conv2d(x.cuda(), w.cuda())
            torch.cuda.current_stream().synchronize()
            results.append(y)

    count = torch.cuda.device_count()
    threads = [threading.Thread(target=work, args=(i % count,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 4
    assert_close(results, [expected] * 4)
    on_last = F.conv2d(x.to(f"cuda:{count - 1}"), w.to(f"cuda:{count - 1}"))
    assert_close([on_last], [expected])


def test_scratch_memory_is_given_back() -> None:
    x, w = numbers(2, 16, 14, 14).cuda(), numbers(32, 16, 3, 3).cuda()
    F.conv2d(x, w)
    gc.collect()
    before = torch.cuda.memory_allocated()
    F.conv2d(x, w)
    assert torch.cuda.memory_allocated() == before


def test_the_library_can_be_asked_about() -> None:
    assert cudnn.version() >= 90000
    x = torch.ones(2, device="cuda")
    assert cudnn.is_acceptable(x) and cudnn.is_acceptable(x.half())
    assert not cudnn.is_acceptable(x.double()) and not cudnn.is_acceptable(x.cpu())
    with cudnn.flags(enabled=False):
        assert not cudnn.is_acceptable(x)


# In processes of their own

CONVOLVES = """
import rushlight as torch
x, w = torch.ones(2, 16, 14, 14).cuda(), torch.ones(32, 16, 3, 3).cuda()
print(torch.backends.cudnn.is_available())
try:
    print(torch.nn.functional.conv2d(x, w).sum().item())
except RuntimeError as error:
    print(error)
"""
SUM = float(2 * 32 * 12 * 12 * 16 * 9)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        pytest.param(
            {"RUSHLIGHT_CUDNN": "/nowhere/libcudnn.so"},
            "cuDNN: /nowhere/libcudnn.so was not found. Looked in: the system's library path. "
            "Install it with: pip install rushlight[cudnn].",
            id="missing",
        ),
        pytest.param(
            {"RUSHLIGHT_SHIM_CUDNN_VERSION": "8907"},
            "is of version 8907, but 9 (90000) or newer is needed. Install it with: pip install "
            "nvidia-cudnn-cu12",
            id="old",
        ),
        pytest.param(
            {"RUSHLIGHT_SHIM_CUDNN_CUDA": "13000"},
            "is for CUDA 13, but the driver is for CUDA 12. Install the one that fits: pip install "
            "nvidia-cudnn-cu12",
            id="for a newer driver",
        ),
    ],
)
def test_a_library_that_was_asked_for_must_fit(
    run_on_shim: Any, variables: dict[str, str], said: str
) -> None:
    available, error = run_on_shim(CONVOLVES, **variables).splitlines()
    assert available == "False" and error.startswith("conv2d: cuDNN: ") and said in error


def test_without_the_library_our_kernels_convolve(run_on_shim: Any) -> None:
    # A driver that is not the system's is nothing for the library that pip may have installed.
    for value in ("off", ""):
        assert run_on_shim(CONVOLVES, RUSHLIGHT_CUDNN=value) == f"False\n{SUM}\n"


@pytest.mark.parametrize(
    ("step", "status", "function"),
    [("plan", "INTERNAL_ERROR", "Finalize"), ("execute", "EXECUTION_FAILED", "Execute")],
)
def test_errors_are_cudnns_own(run_on_shim: Any, step: str, status: str, function: str) -> None:
    said = run_on_shim(CONVOLVES, RUSHLIGHT_SHIM_CUDNN_FAILS=step)
    assert said == (
        f"True\nconv2d: cuDNN error: CUDNN_STATUS_{status}: it was told to fail (from "
        f"cudnnBackend{function}). RUSHLIGHT_CUDNN=off does without cuDNN.\n"
    )


def test_the_cpu_needs_no_library(run_python: Any) -> None:
    run_python(
        """
        import rushlight as torch
        torch.backends.cudnn.benchmark = True
        torch.nn.functional.conv2d(torch.ones(2, 16, 14, 14), torch.ones(32, 16, 3, 3))
        assert "cudnn" not in open("/proc/self/maps").read().replace("/wt/cudnn/", "")
        """,
        RUSHLIGHT_CUDNN="/nowhere/libcudnn.so",
    )


def test_our_kernels_round_as_cudnn_would(run_on_shim: Any) -> None:
    said = run_on_shim(
        """
        import numpy as np
        import rushlight as torch
        from rushlight.nn.functional import conv2d

        def rounded(x):
            bits = (x.numpy().view(np.uint32) + 0x1000) & ~np.uint32(0x1FFF)
            return torch.tensor(bits.view(np.float32))

        def worked(x, w, g, form):
            x, w = (t.detach().to(memory_format=form).requires_grad_() for t in (x, w))
            y = conv2d(x, w, padding=1)
            return [t.cpu() for t in (y.detach(), *torch.autograd.grad(y, (x, w), g))]

        torch.manual_seed(0)
        # By vectors and without, in large and in small tiles; not much more than what is worth it.
        for channels, outputs in [(28, 132), (33, 35)]:
            shapes = (2, channels, 8, 9), (outputs, channels, 3, 3), (2, outputs, 8, 9)
            operands = [torch.randn(shape) for shape in shapes]
            for form in (torch.contiguous_format, torch.channels_last):
                for allowed in (True, False):
                    torch.backends.cudnn.allow_tf32 = allowed
                    mine = worked(*(t.cuda() for t in operands), form)
                    reference = worked(*map(rounded, operands) if allowed else operands, form)
                    for a, b in zip(mine, reference):
                        assert (a - b).abs().max() < 1e-5 * b.abs().max()
        print(torch.backends.cudnn.is_available())
        """,
        RUSHLIGHT_CUDNN="off",
    )
    assert said == "False\n"
