"""The pieces of work of `gpu_stages.py first`: each compares one kind of work with the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PIECES: dict[str, Callable[[Any], Any]] = {}


def piece(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    PIECES[function.__name__] = function
    return function


def same(torch: Any, function: Callable[..., Any], *inputs: Any, tolerance: float = 1e-4) -> None:
    """Compares results and gradients with those of the CPU."""

    def run(device: str) -> list[Any]:
        points = [t.to(device).detach() for t in inputs]
        wanted = [p.requires_grad_() for p in points if p.is_floating_point()]
        results = function(*points)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        total = sum((r.float() * r.float()).sum() for r in results if r.requires_grad)
        grads = torch.autograd.grad(total, wanted) if any(r.requires_grad for r in results) else []
        return [*results, *grads]

    for i, (mine, reference) in enumerate(zip(run("cuda"), run("cpu"), strict=True)):
        mine, reference = mine.detach().cpu().double(), reference.detach().double()
        assert mine.shape == reference.shape, (i, mine.shape, reference.shape)
        scale = max(1.0, float(reference.abs().max())) if reference.numel() else 1.0
        error = float((mine - reference).abs().max()) / scale if reference.numel() else 0.0
        assert error <= tolerance, f"result {i} differs by {error:.2e} of the largest number"


@piece
def memory(torch: Any) -> None:
    x = torch.arange(1 << 20, device="cpu")
    y = x.to("cuda")
    assert torch.equal(y.cpu(), x) and torch.equal(y.clone().cpu(), x)
    pinned = x.pin_memory()
    z = pinned.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    assert torch.equal(z.cpu(), x) and torch.cuda.memory_allocated() > 0
    del y, z
    torch.cuda.empty_cache()
    assert torch.zeros(5, device="cuda").tolist() == [0] * 5


@piece
def pointwise(torch: Any) -> None:
    x, y = torch.randn(100_003), torch.randn(100_003)
    same(torch, lambda a, b: torch.nn.functional.gelu(a) * b + 2, x, y)
    same(torch, lambda a: a.exp().sin(), x.half(), tolerance=5e-3)
    same(torch, lambda a, b: a.t() + b, torch.randn(300, 200), torch.randn(200, 1))


@piece
def chains(torch: Any) -> None:
    @torch.compile
    def chain(x: Any, row: Any) -> Any:
        return (x * row + 1).sigmoid() * x.to(torch.float16).float()

    same(torch, chain, torch.randn(300, 1001), torch.randn(1001), tolerance=1e-2)
    x = torch.randn(1000, 1001, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = chain(x, x[0])
    torch.cuda.current_stream().wait_stream(side)
    assert torch.equal(y, (x * x[0] + 1).sigmoid() * x.half().float())


@piece
def reductions(torch: Any) -> None:
    x = torch.randn(300, 1000)
    same(torch, lambda a: (a.sum(), a.mean(0), a.var(1), a.logsumexp(1)), x)
    same(torch, lambda a: (a.argmax(1), a.argmin(0), (a > 0).any(1)), x)
    same(torch, lambda a: a.sum(), torch.randn(10_000_000) / 100)


@piece
def rows(torch: Any) -> None:
    F = torch.nn.functional
    x, weight, bias = torch.randn(64, 1000), torch.randn(1000), torch.randn(1000)
    same(torch, lambda a: (a.softmax(1), a.log_softmax(0)), x)
    same(torch, lambda a, w, b: F.layer_norm(a, (1000,), w, b), x, weight, bias)
    labels = torch.arange(64) % 1000
    same(torch, lambda a: F.cross_entropy(a, labels.to(a.device)), x)
    image = torch.randn(8, 6, 9, 9)
    same(torch, lambda a: F.batch_norm(a, None, None, training=True), image, tolerance=1e-3)


@piece
def products(torch: Any) -> None:
    torch.backends.cuda.matmul.allow_tf32 = False
    for dtype, tolerance in ((torch.float32, 1e-4), (torch.float16, 1e-2), (torch.bfloat16, 5e-2)):
        a, b, c = (torch.randn(*s).to(dtype) for s in ((130, 257), (257, 70), (70,)))
        same(torch, lambda x, y, z: torch.addmm(z, x, y), a, b, c, tolerance=tolerance)
        same(torch, lambda x, y: x.t() @ y.t(), a, b.new_tensor(b[:130, :].tolist()).t(),
             tolerance=tolerance) if dtype is torch.float32 else None  # fmt: skip
        same(torch, torch.bmm, torch.randn(5, 33, 64).to(dtype), torch.randn(5, 64, 17).to(dtype),
             tolerance=tolerance)  # fmt: skip
    same(torch, lambda x, y: x @ y, torch.randn(300, 300).double(), torch.randn(300).double())
    same(torch, lambda x, y: x @ y, torch.arange(400).reshape(20, 20), torch.arange(20))


@piece
def convolutions(torch: Any) -> None:
    F = torch.nn.functional
    torch.backends.cudnn.allow_tf32 = False
    x, w, b = torch.randn(4, 16, 30, 30), torch.randn(32, 16, 3, 3), torch.randn(32)
    for enabled in (True, False):
        with torch.backends.cudnn.flags(enabled=enabled, allow_tf32=False):
            same(torch, lambda i, k, c: F.conv2d(i, k, c, padding=1), x, w, b, tolerance=1e-3)
            same(torch, lambda i, k: F.conv_transpose2d(i, k, stride=2), x, w.transpose(0, 1),
                 tolerance=1e-3)  # fmt: skip
            same(torch, lambda i, k: F.conv2d(i, k, groups=16), x, w[:16, :1], tolerance=1e-3)
            for dtype, tolerance in ((torch.float16, 1e-2), (torch.bfloat16, 1e-1)):
                for form in (torch.contiguous_format, torch.channels_last):
                    half = [t.to(dtype).to(memory_format=form) for t in (x, w)]
                    same(torch, lambda i, k: F.conv2d(i, k, padding=1), *half, tolerance=tolerance)
    same(torch, lambda i: F.max_pool2d(i, 3, 2, 1), x)
    same(torch, lambda i: F.interpolate(i, scale_factor=2.0, mode="bilinear"), x)


@piece
def halves(torch: Any) -> None:
    # Each number of 16 bits, and floats that lie between them, are too large, or are no numbers.
    bits = torch.arange(1 << 16).to(torch.int32).to(torch.int16)
    steps = torch.arange(-(1 << 31), 1 << 31, 99991).to(torch.int32)
    for dtype in (torch.float16, torch.bfloat16):
        for x, to in ((bits.view(dtype), torch.float32), (steps.view(torch.float32), dtype)):
            mine, reference = x.cuda().to(to).cpu(), x.to(to)
            assert torch.equal(mine.isnan(), reference.isnan()), (dtype, to)
            assert torch.equal(mine[~mine.isnan()], reference[~mine.isnan()]), (dtype, to)


@piece
def attention(torch: Any) -> None:
    attend = torch.nn.functional.scaled_dot_product_attention
    q, k, v = (torch.randn(2, 4, 100, 64) for _ in range(3))
    same(torch, lambda a, b, c: attend(a, b, c, is_causal=True), q, k, v, tolerance=1e-3)
    for dtype in (torch.float16, torch.bfloat16):
        half = [t.to(dtype) for t in (q, k, v)]
        same(torch, lambda a, b, c: attend(a, b, c, is_causal=True), *half, tolerance=5e-2)


@piece
def orders(torch: Any) -> None:
    x = torch.randn(50, 3000)
    same(torch, lambda a: (*a.sort(1), *a.topk(7, 1), a.cumsum(1)), x)
    same(torch, lambda a: (a.cummax(0).values, a.cumprod(1)), torch.rand(40, 500) + 0.5)
    long = torch.randn(1 << 20)
    same(torch, lambda a: (a.sort().values, a.cumsum(0)), long)


@piece
def indices(torch: Any) -> None:
    x, at = torch.randn(500, 64), torch.randint(0, 500, (2000,))
    same(torch, lambda a: a[at.to(a.device)], x)
    same(torch, lambda a: torch.nn.functional.embedding(at.to(a.device), a), x)
    same(torch, lambda a: a.new_zeros(500, 64).index_add(0, at.to(a.device)[:500], a), x)
    same(torch, lambda a: a[a[:, 0] > 0], x)
    try:
        x.cuda()[torch.tensor([500], device="cuda")]
    except IndexError:
        return
    raise AssertionError("a wrong index was not refused")


@piece
def transforms(torch: Any) -> None:
    for size in (64, 1000, 1009, 1 << 15):
        x = torch.randn(3, size)
        mine, reference = torch.fft.rfft(x.cuda()).cpu(), torch.fft.rfft(x)
        assert float((mine - reference).abs().max()) <= 1e-4 * float(reference.abs().max()), size


@piece
def linear_algebra(torch: Any) -> None:
    a = torch.randn(40, 40, dtype=torch.float64) + 10 * torch.eye(40, dtype=torch.float64)
    same(torch, torch.linalg.solve, a, torch.randn(40, 3, dtype=torch.float64))
    same(torch, lambda m: torch.linalg.cholesky(m @ m.t()), a)
    same(torch, lambda m: (torch.linalg.svdvals(m), torch.linalg.eigvalsh(m + m.t())), a)


@piece
def random_numbers(torch: Any) -> None:
    for draw in (torch.rand, torch.randn):
        torch.manual_seed(3)
        mine = draw(10_001, device="cuda").cpu()
        torch.manual_seed(3)
        assert float((mine - draw(10_001)).abs().max()) < 1e-5
    x = torch.ones(100_000, device="cuda")
    assert abs(float(torch.nn.functional.dropout(x, 0.3).mean()) - 1) < 0.02


@piece
def streams(torch: Any) -> None:
    side = torch.cuda.Stream()
    x = torch.randn(1 << 22, device="cuda")
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        y = x * 2 + 1
    torch.cuda.current_stream().wait_stream(side)
    assert torch.equal(y.cpu(), x.cpu() * 2 + 1)
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    x.sin()
    end.record()
    end.synchronize()
    assert start.elapsed_time(end) > 0


@piece
def graphs(torch: Any) -> None:
    x = torch.ones(1000, device="cuda")
    with torch.cuda.stream(torch.cuda.Stream()):
        x * 2 + torch.rand(1000, device="cuda").sum()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = (x * 2).sum()
    for value in (1.0, 3.0):
        x.fill_(value)
        graph.replay()
        assert y.item() == 2000 * value


@piece
def optimizers(torch: Any) -> None:
    for make in (torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW):
        results = []
        for device in ("cuda", "cpu"):
            torch.manual_seed(0)
            net = torch.nn.Linear(50, 20).to(device)
            optimizer = make(net.parameters(), lr=0.01)
            x = torch.linspace(-1, 1, 500).reshape(10, 50).to(device)
            for _ in range(5):
                optimizer.zero_grad()
                net(x).square().mean().backward()
                torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
                optimizer.step()
            results.append(net.weight.detach().cpu())
        assert float((results[0] - results[1]).abs().max()) < 1e-4, make.__name__
