"""CUDA graphs: what is captured and replayed equals the same work without a graph, bit for bit."""

from __future__ import annotations

import gc
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

import rushlight as torch

nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="there is neither GPU nor shim"
)


def captured(work: Callable[[], Any], pool: Any = None) -> tuple[Any, Any]:
    """Warms up, captures, and returns the graph and what the work returned."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        result = work()
    return graph, result


def test_a_replay_reads_and_writes_the_same_memory() -> None:
    x = torch.arange(4.0, device="cuda")
    graph, y = captured(lambda: (x * 2 + 1).relu().sum())
    for value in (1.0, -5.0, 3.0):
        x.fill_(value)
        graph.replay()
        assert y.item() == max(2 * value + 1, 0) * 4


class Net(nn.Module):
    def __init__(self, dropout: float) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.layers = nn.Sequential(
            nn.Linear(8, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(dropout), nn.Linear(16, 5)
        )

    def forward(self, numbers: Any) -> Any:
        return self.layers(self.table(numbers))


OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "sgd": lambda params: torch.optim.SGD(params, lr=0.1, momentum=0.9),
    "rmsprop": lambda params: torch.optim.RMSprop(params, lr=0.01, capturable=True),
    "adamw": lambda params: torch.optim.AdamW(params, lr=0.01, capturable=True),
    "adam": lambda params: torch.optim.Adam(params, lr=0.01, amsgrad=True, capturable=True),
}


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_a_training_step_equals_the_eager_one(make: Callable[[Any], Any]) -> None:
    torch.manual_seed(0)
    batches = [(torch.randint(11, (6,)), torch.randint(5, (6,))) for _ in range(6)]

    def train(uses_graph: bool) -> list[Any]:
        torch.manual_seed(1)
        net = Net(0.3).cuda()
        optimizer = make(net.parameters())
        numbers, labels = (tensor.cuda() for tensor in batches[0])

        def step() -> Any:
            optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(net(numbers), labels)
            loss.backward()
            optimizer.step()
            return loss

        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            step()
        torch.cuda.synchronize()
        graph, loss = torch.cuda.CUDAGraph(), torch.zeros(())
        if uses_graph:
            with torch.cuda.graph(graph):
                loss = step()
        losses = []
        for new_numbers, new_labels in batches[1:]:
            numbers.copy_(new_numbers)
            labels.copy_(new_labels)
            if uses_graph:
                graph.replay()
            else:
                loss = step()
            losses.append(loss.item())
        step()  # eager steps go on from where the replays came to
        state = optimizer.state_dict()["state"][0]
        return [losses, *(p.tolist() for p in net.parameters()), float(state.get("step", 0))]

    assert train(True) == train(False)


def test_replays_draw_the_numbers_that_eager_work_draws() -> None:
    def work() -> tuple[Any, ...]:
        normal = torch.randn(5, device="cuda")
        kept = F.dropout(torch.ones(9, device="cuda"), 0.4)
        chances = torch.full((7,), 0.5, device="cuda").bernoulli_(0.5)
        return normal, kept, torch.rand(3, device="cuda"), chances

    graph, results = captured(work)
    torch.manual_seed(3)
    expected = [[t.tolist() for t in work()] for _ in range(3)]
    after = torch.rand(2).tolist()
    torch.manual_seed(3)
    for each in expected:
        graph.replay()
        assert [t.tolist() for t in results] == each
    assert torch.rand(2).tolist() == after


def test_replays_draw_anew_after_memory_was_freed_in_the_capture() -> None:
    x = torch.ones(4, device="cuda")
    graph, (_, drawn) = captured(lambda: ((x + 1) @ (x + 2), torch.rand(4, device="cuda")))
    results = []
    for _ in range(2):
        graph.replay()
        results.append(drawn.tolist())
    assert results[0] != results[1]


def test_a_generator_draws_in_a_graph_that_knows_it() -> None:
    generator = torch.Generator("cuda")
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="register_generator_state"), torch.cuda.graph(graph):
        torch.rand(3, device="cuda", generator=generator)
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        x = torch.rand(3, device="cuda", generator=generator)
    generator.manual_seed(5)
    expected = torch.rand(3, device="cuda", generator=generator).tolist()
    generator.manual_seed(5)
    graph.replay()
    assert x.tolist() == expected


def test_attention_drops_the_same_weights_forward_and_backward() -> None:
    q, k, v = (torch.randn(2, 2, 9, 8, device="cuda", requires_grad=True) for _ in range(3))

    def work() -> tuple[Any, ...]:
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.3, is_causal=True)
        return (y.detach(), *torch.autograd.grad(y.square().sum(), (q, k, v)))

    graph, results = captured(work)
    torch.manual_seed(2)
    expected = [[t.tolist() for t in work()] for _ in range(2)]
    torch.manual_seed(2)
    for each in expected:
        graph.replay()
        assert [t.tolist() for t in results] == each


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "item": (lambda x: x.sum().item(), "^item: "),
    "cpu": (lambda x: x.cpu(), "^to: .* waits for the numbers"),
    "cuda": (lambda x: torch.ones(3).cuda(), "^to: .* without pinned memory"),
    "nonzero": (lambda x: x.nonzero(), "^nonzero: "),
    "inv": (lambda x: torch.linalg.inv(torch.eye(2, device="cuda")), "^inv: "),
    "synchronize": (lambda x: torch.cuda.synchronize(), "^synchronize: "),
    "stream": (lambda x: torch.cuda.current_stream().synchronize(), r"^Stream\.synchronize: "),
    "event": (lambda x: torch.cuda.current_stream().record_event().synchronize(), "^Event"),
    "seed": (lambda x: torch.manual_seed(0), "^manual_seed: "),
    "cache": (lambda x: torch.cuda.empty_cache(), "^empty_cache: "),
    "adam": (lambda x: adam_step(x, capturable=False), "Adam but .* capturable is False"),
    "first step": (lambda x: adam_step(x, capturable=True), "cannot begin the state"),
}


def adam_step(x: Any, capturable: bool) -> None:
    x.grad = torch.ones_like(x)
    torch.optim.Adam([x], capturable=capturable).step()


@pytest.mark.parametrize(("work", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_captured_is_named_and_the_stream_goes_on(work: Any, message: str) -> None:
    x = torch.arange(3.0, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match=message), torch.cuda.graph(graph):
        work(x + 1)
    assert not torch.cuda.is_current_stream_capturing()
    with torch.cuda.graph(graph):
        assert torch.cuda.is_current_stream_capturing()
        y = x + 2
    graph.replay()
    assert y.tolist() == [2, 3, 4]


def test_indices_are_checked_by_the_replay(run_on_shim: Any) -> None:
    run_on_shim(
        """
        import rushlight as torch
        table = torch.arange(12.0, device="cuda").reshape(4, 3)
        index = torch.tensor([1, 3], device="cuda")
        works = {
            "index": lambda: table[index],
            "gather": lambda: table[:, 0].gather(0, index),
            "embedding": lambda: torch.nn.functional.embedding(index, table),
            "one_hot": lambda: torch.nn.functional.one_hot(index, 4),
        }
        for name, work in works.items():
            index.copy_(torch.tensor([1, 3]))
            work()
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                y = work()
            index.copy_(torch.tensor([2, 0]))
            graph.replay()
            assert torch.equal(y, work()), name
            index.copy_(torch.tensor([2, 4]))
            try:
                graph.replay()
                torch.cuda.synchronize()  # at the latest
            except RuntimeError as error:
                assert "CUDA error: unspecified launch failure" in str(error), name
            else:
                raise AssertionError(name)
        """
    )


def test_memory_of_a_graph_is_given_to_nobody_else_until_it_is_reset() -> None:
    x = torch.ones(1000, device="cuda")
    torch.cuda.synchronize()
    reserved = torch.cuda.memory_reserved()
    graph, y = captured(lambda: ((x * 2) * 3) * 4)
    address = y.data_ptr()
    del y
    others = [torch.zeros(1000, device="cuda") for _ in range(50)]
    graph.replay()
    assert address not in {other.data_ptr() for other in others}
    assert not any(other.any().item() for other in others)
    assert torch.cuda.memory_reserved() > reserved
    del others
    graph.reset()
    gc.collect()
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() <= reserved
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        graph.replay()


def test_a_graph_reuses_its_own_memory_and_shares_a_pool() -> None:
    x = torch.ones(1000, device="cuda")

    def chain() -> Any:
        y = x
        for _ in range(20):
            y = y + 1
        return y

    first, y = captured(chain)
    used = torch.cuda.memory_allocated()
    second, z = captured(lambda: chain() * 2, pool=first.pool())
    assert first.pool() == second.pool()
    assert torch.cuda.memory_allocated() - used <= 3 * 4096
    for _ in range(2):
        first.replay()
        second.replay()
        assert y[0].item() == 21 and z[0].item() == 42


def test_streams_join_a_capture_and_must_come_back() -> None:
    x = torch.ones(8, device="cuda")
    side = torch.cuda.Stream()

    def fork(joins: bool) -> Any:
        here = torch.cuda.current_stream()
        y = x + 1
        side.wait_stream(here)
        with torch.cuda.stream(side):
            z = y * 3
        if joins:
            here.wait_stream(side)
        return z

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        z = fork(joins=True) + 1
    x.fill_(2)
    graph.replay()
    assert z.tolist() == [10] * 8
    with pytest.raises(RuntimeError, match="unjoined"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        fork(joins=False)
    assert fork(joins=True).tolist() == [9] * 8


def test_pinned_memory_is_copied_again_and_kept_by_the_graph() -> None:
    source = torch.arange(4.0).pin_memory()
    target = torch.zeros(4).pin_memory()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x = source.to("cuda", non_blocking=True)
        target.copy_(x * 2, non_blocking=True)
    source.add_(1)
    graph.replay()
    torch.cuda.synchronize()
    assert target.tolist() == [2, 4, 6, 8]
    address = source.data_ptr()
    del source
    gc.collect()

    def addresses(count: int) -> set[int]:
        blocks = [torch.zeros(4).pin_memory() for _ in range(count)]
        return {block.data_ptr() for block in blocks}

    assert address not in addresses(16)
    graph.reset()
    assert address in addresses(64)  # more than are free by now


def test_a_capture_needs_a_stream_and_happens_once(tmp_path: pathlib.Path) -> None:
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="non-default stream"):
        graph.capture_begin()
    with pytest.raises(RuntimeError, match="no capture goes on"):
        graph.capture_end()
    with pytest.raises(RuntimeError, match="Unknown capture error mode"):
        graph.capture_begin(capture_error_mode="lenient")
    with pytest.warns(UserWarning, match="The CUDA Graph is empty"), torch.cuda.graph(graph):
        pass
    with pytest.raises(RuntimeError, match="holds a capture already"), torch.cuda.graph(graph):
        pass
    kept = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(kept):
        y = torch.ones(3, device="cuda") * 2
    assert kept.raw_cuda_graph() and not kept.raw_cuda_graph_exec()
    kept.instantiate()
    assert kept.raw_cuda_graph_exec()
    kept.replay()
    assert y.tolist() == [2, 2, 2]
    kept.debug_dump(str(tmp_path / "graph.dot"))
    assert (tmp_path / "graph.dot").read_text().startswith("digraph")


def test_graphed_callables_give_what_the_originals_give() -> None:
    torch.manual_seed(0)
    data = [torch.randn(4, 6, device="cuda") for _ in range(3)]

    def train(graphs: bool) -> list[Any]:
        torch.manual_seed(1)
        first = nn.Sequential(nn.Linear(6, 8), nn.ReLU()).cuda()
        second = nn.Sequential(nn.Dropout(0.5), nn.Linear(8, 2)).cuda()
        optimizer = torch.optim.SGD([*first.parameters(), *second.parameters()], lr=0.1)
        if graphs:
            samples = ((torch.randn(4, 6, device="cuda"),),)
            samples += ((torch.randn(4, 8, device="cuda", requires_grad=True),),)
            first, second = torch.cuda.make_graphed_callables((first, second), samples)
        torch.manual_seed(2)
        losses = []
        for x in data:
            optimizer.zero_grad()
            loss = second(first(x)).square().mean()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        second.eval()
        losses.append(second(first(data[0])).sum().item())
        return losses + [p.tolist() for p in first.parameters()]

    assert train(True) == train(False)


def test_a_graphed_function_keeps_its_structure() -> None:
    def function(x: Any, y: Any) -> dict[str, Any]:
        return {"sum": x + y, "more": (x * y, x - y)}

    x, y = (torch.randn(3, device="cuda", requires_grad=True) for _ in range(2))
    graphed = torch.cuda.make_graphed_callables(function, (x, y))
    a, b = (torch.randn(3, device="cuda", requires_grad=True) for _ in range(2))
    mine, expected = graphed(a, b), function(a, b)
    assert mine["sum"].tolist() == expected["sum"].tolist()
    assert mine["more"][0].tolist() == expected["more"][0].tolist()
    grads = torch.autograd.grad(mine["more"][0].sum(), (a, b))
    assert [g.tolist() for g in grads] == [b.tolist(), a.tolist()]
    with pytest.raises(TypeError, match="takes 2 tensors, got 1"):
        graphed(a)
