"""torch.autograd.graph: nodes, edges, hooks of several tensors, what ops save."""

from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import rushlight as torch
import rushlight.nn.functional as F
from rushlight._insides import _current_graph_task_id, _will_engine_execute_node
from rushlight.autograd import graph


def leaf(*values: float) -> torch.Tensor:
    return torch.tensor(values, requires_grad=True)


# Nodes and edges


def test_a_called_node_returns_the_gradients_of_its_inputs() -> None:
    x, row = torch.ones(3, 2, requires_grad=True), leaf(2.0, 3.0)
    product = x * row
    by_x, by_row = product.grad_fn(torch.ones(3, 2))
    assert by_x.tolist() == [[2, 3]] * 3
    assert by_row.tolist() == [3, 3]  # summed to the shape of the input
    (x.exp()).grad_fn(torch.ones(3, 2, dtype=torch.float64)).sum().backward()
    assert x.grad is not None and x.grad.dtype == torch.float32
    values, _ = x.max(0)
    assert values.grad_fn(torch.ones(2), None).tolist() == [[1, 1], [0, 0], [0, 0]]
    assert x.exp().grad_fn(None) is None


def test_a_called_accumulator_accumulates() -> None:
    x = leaf(1.0)
    accumulator = graph.get_gradient_edge(x).node
    assert accumulator(torch.ones(1)) == ()
    assert x.grad is not None and x.grad.tolist() == [1]


def test_a_called_node_checks_its_arguments() -> None:
    x = leaf(1.0, 2.0)
    node = x.exp().grad_fn
    with pytest.raises(TypeError, match="ExpBackward0 expected 1 arguments, got 2 instead"):
        node(torch.ones(2), torch.ones(2))
    with pytest.raises(TypeError, match="got 0 instead"):
        node()
    with pytest.raises(TypeError, match="no keyword arguments"):
        node(torch.ones(2), grad=1)
    with pytest.raises(RuntimeError, match=r"result 0 has shape \(2,\), but its gradient has"):
        node(torch.ones(3))
    with pytest.raises(TypeError):
        node(3)
    y = x.exp()
    y.sum().backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.grad_fn(torch.ones(2))


def test_dir_of_a_node_lists_what_it_keeps() -> None:
    x = leaf(1.0)
    kept = [name for name in dir((x * x).grad_fn) if name.startswith("_saved_")]
    assert kept == ["_saved_other", "_saved_self"]
    node = x.exp().grad_fn
    assert {"_saved_result", "_raw_saved_result", "register_hook"} <= set(dir(node))


def test_nodes_tell_their_name_class_and_neighbors() -> None:
    x = leaf(1.0)
    node = x.exp().sum().grad_fn
    assert isinstance(node, graph.Node)
    assert type(node).__name__ == node.name() == "SumBackward0"
    (inner, slot), *_ = node.next_functions
    assert inner.name() == "ExpBackward0" and slot == 0
    assert inner.next_functions[0][0].variable is x
    with pytest.raises(TypeError):
        graph.Node()
    with pytest.raises(TypeError):
        type(node)()


def test_nodes_have_the_names_that_programs_know_from_pytorch() -> None:
    x, picture = torch.rand(2, 3, requires_grad=True), torch.rand(1, 1, 4, 4, requires_grad=True)
    classes = torch.tensor([0, 2])
    names = {
        "AddmmBackward0": F.linear(x, x.detach(), torch.ones(2)),
        "ConvolutionBackward0": F.conv2d(picture, torch.ones(1, 1, 2, 2)),
        "LinalgVectorNormBackward0": x.norm(),
        "MaxPool2DWithIndicesBackward0": F.max_pool2d(picture, 2),
        "MmBackward0": x @ torch.ones(3, 2),
        "NativeLayerNormBackward0": F.layer_norm(x, (3,)),
        "NllLossBackward0": F.cross_entropy(x, classes),
        "SplitBackward0": x.chunk(2)[0],
        "ToCopyBackward0": x.double(),
        "ViewBackward0": x.reshape(-1),
    }
    for name, result in names.items():
        assert result.grad_fn.name() == type(result.grad_fn).__name__ == name
    assert repr(names["NllLossBackward0"]).endswith("grad_fn=<NllLossBackward0>)")


def test_metadata_stays_with_the_node() -> None:
    y = leaf(1.0).exp()
    y.grad_fn.metadata["note"] = 7
    gc.collect()
    assert y.grad_fn.metadata == {"note": 7}


def test_walks_take_the_newest_node_that_is_ready_unless_it_runs_last() -> None:
    def order(*last: str) -> list[str]:
        x, ran = leaf(1.0), []
        results = {"a": x * 2, "b": x * 3, "c": x * 4}
        for name, result in results.items():
            result.grad_fn.register_prehook(lambda grads, name=name: ran.append(name))
        for name in last:
            results[name].grad_fn._run_last()
        torch.autograd.backward(list(results.values()), [torch.ones(1)] * 3)
        return ran

    assert order() == ["c", "b", "a"]
    assert order("c") == ["b", "a", "c"]


def test_edges_stand_for_tensors_in_grad_and_backward() -> None:
    x = leaf(1.0, 2.0)
    y = x * 3
    edge = graph.get_gradient_edge(y)
    z = (y * y).sum()
    np.testing.assert_allclose(torch.autograd.grad(z, edge, retain_graph=True)[0], [6.0, 12.0])
    np.testing.assert_allclose(
        torch.autograd.grad(z, [edge, graph.get_gradient_edge(x)], retain_graph=True)[1],
        [18.0, 36.0],
    )
    torch.autograd.backward(edge, torch.ones(2), retain_graph=True)
    assert x.grad.tolist() == [3.0, 3.0]
    torch.autograd.backward(graph.get_gradient_edge(z), inputs=graph.get_gradient_edge(x))
    assert x.grad.tolist() == [21.0, 39.0]


def test_edges_report_unused_and_bad_places() -> None:
    x, unused = leaf(1.0), leaf(1.0, 2.0)
    edge = graph.get_gradient_edge(unused)
    zeros = torch.autograd.grad(x.sum(), edge, materialize_grads=True)[0]
    assert zeros.tolist() == [0.0, 0.0]
    with pytest.raises(RuntimeError, match="does not require"):
        graph.get_gradient_edge(torch.ones(1))
    with pytest.raises(IndexError):
        torch.autograd.grad(x.sum(), graph.GradientEdge(edge.node, 3))
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        torch.autograd.backward(edge, torch.ones(3))


def test_increment_version_spoils_what_was_saved() -> None:
    x = leaf(1.0)
    y = x * 2
    z = (y * y).sum()
    graph.increment_version([y])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


# Hooks of several tensors


def test_multi_grad_hook_waits_for_all_that_backward_passes() -> None:
    x, y, z = leaf(1.0), leaf(1.0), leaf(1.0)
    calls = []
    handle = graph.register_multi_grad_hook(
        [x, y, z], lambda grads: calls.append([g if g is None else g.item() for g in grads])
    )
    (2 * x + 3 * y).sum().backward()
    (2 * x + 3 * y + 4 * z).sum().backward()
    torch.autograd.grad((2 * x + 3 * y).sum(), y)
    assert calls == [[2.0, 3.0, None], [2.0, 3.0, 4.0], [None, 3.0, None]]
    handle.remove()
    x.sum().backward()
    assert len(calls) == 3


def test_multi_grad_hook_calls_for_the_first_gradient_of_each_backward() -> None:
    x, y = leaf(1.0), leaf(1.0)
    calls = []
    graph.register_multi_grad_hook([x, y], lambda grad: calls.append(grad.item()), mode="any")
    for _ in range(2):
        (2 * x + 3 * y).sum().backward()
    assert len(calls) == 2
    with pytest.raises(ValueError, match="Expects mode to be one of"):
        graph.register_multi_grad_hook([x], print, mode="some")


def test_multi_grad_hook_does_not_keep_the_graph() -> None:
    x = leaf(1.0)
    y = x * 2
    graph.register_multi_grad_hook([y, y * 2], print)

    class Witness:
        pass

    witness = Witness()
    y.grad_fn.metadata["witness"] = witness
    gone = weakref.ref(witness)
    del witness, y
    gc.collect()
    assert gone() is None


# Saved tensors


def test_saved_inputs_and_results_go_through_the_hooks() -> None:
    x = leaf(2.0)
    log = []

    def pack(t: torch.Tensor) -> np.ndarray:
        log.append(("pack", t.item()))
        return t.detach().numpy().copy()

    def unpack(a: np.ndarray) -> torch.Tensor:
        log.append(("unpack", a.item()))
        return torch.from_numpy(a)

    with graph.saved_tensors_hooks(pack, unpack):
        y = (x * x).sqrt()
    z = y * 1
    z.sum().backward()
    assert [entry for entry in log if entry[0] == "pack"] == [
        ("pack", 2.0),
        ("pack", 2.0),
        ("pack", 2.0),
    ]
    assert len(log) == 6 and x.grad.tolist() == [1.0]


def test_packed_values_are_what_backward_uses() -> None:
    x = leaf(2.0)
    with graph.saved_tensors_hooks(lambda t: t * 10, lambda t: t):
        y = x.pow(3)
    y.sum().backward()
    assert x.grad.tolist() == [1200.0]


def test_gradients_of_gradients_flow_through_unpacked_tensors() -> None:
    x = leaf(2.0)
    with graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = x.exp() * x
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    np.testing.assert_allclose(second, [4 * np.exp(2.0)], rtol=1e-6)


def test_an_overwritten_input_is_packed_as_it_was() -> None:
    x = leaf(3.0)
    packed = []
    y = x * 1
    with graph.saved_tensors_hooks(lambda t: (packed.append(t.item()), t.clone())[1], lambda t: t):
        y.pow_(2)
    y.sum().backward()
    assert packed == [3.0] and x.grad.tolist() == [6.0]


def test_only_the_innermost_hooks_pack() -> None:
    x = leaf(2.0)
    log = []

    def hooks(name: str) -> graph.saved_tensors_hooks:
        return graph.saved_tensors_hooks(lambda t: (log.append(name), t)[1], lambda t: t)

    with hooks("outer"):
        with hooks("inner"):
            x.exp()
        x.exp()
    x.exp()
    assert log == ["inner", "outer"]


def test_hooks_are_of_one_thread() -> None:
    x = leaf(2.0)
    log = []
    with graph.saved_tensors_hooks(lambda t: log.append(1), lambda t: t):
        worker = threading.Thread(target=x.exp)
        worker.start()
        worker.join()
    assert not log


def test_bad_hooks_raise() -> None:
    x = leaf(2.0)
    with (
        graph.saved_tensors_hooks(lambda t: t.add_(1), lambda t: t),
        pytest.raises(RuntimeError, match="modifying its input in place"),
    ):
        x.exp()
    for unpacked, error, message in [
        (None, TypeError, "unpack_hook expected to be a Tensor but got result of type NoneType"),
        (torch.ones(2), RuntimeError, "was saved"),
        (torch.ones(1).double(), RuntimeError, "was saved"),
    ]:
        with graph.saved_tensors_hooks(lambda t: 0, lambda p, unpacked=unpacked: unpacked):
            y = x.exp()
        with pytest.raises(error, match=message):
            y.backward()
    with graph.saved_tensors_hooks(lambda t: 1 / 0, lambda t: t), pytest.raises(ZeroDivisionError):
        x.exp()
    assert torch.autograd.grad(x.exp(), x)[0].item() > 7


def test_saving_hooks_must_be_functions() -> None:
    with (
        pytest.raises(TypeError, match="both hooks must be functions, not int"),
        graph.saved_tensors_hooks(lambda t: t, 2),
    ):
        pass
    assert torch.ones(1, requires_grad=True).exp().requires_grad


def test_packed_objects_are_freed_after_backward() -> None:
    class Packed:
        def __init__(self, tensor: torch.Tensor) -> None:
            self.tensor = tensor

    alive: list[weakref.ref[Packed]] = []

    def pack(t: torch.Tensor) -> Packed:
        packed = Packed(t)
        alive.append(weakref.ref(packed))
        return packed

    x = leaf(2.0)
    with graph.saved_tensors_hooks(pack, lambda p: p.tensor):
        y = x.exp()
    assert alive[0]() is not None
    y.backward()
    assert alive[0]() is None
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_hooks_can_be_refused() -> None:
    with graph.disable_saved_tensors_hooks("outer"):
        inner = graph.disable_saved_tensors_hooks("inner")
        with inner, pytest.raises(RuntimeError, match="inner"), graph.save_on_cpu():
            pass
        with pytest.raises(RuntimeError, match="outer"), graph.save_on_cpu():
            pass
    with (
        graph.save_on_cpu(),
        pytest.raises(RuntimeError, match="late"),
        graph.disable_saved_tensors_hooks("late"),
    ):
        pass
    with graph.save_on_cpu():
        y = leaf(2.0).exp()
    y.backward()


def test_mutation_of_saved_tensors_copies_them() -> None:
    x = leaf(2.0, 3.0)
    with graph.allow_mutation_on_saved_tensors():
        y = x.clone()
        z = (y**2).sum()
        y[:1].zero_()
        w = (y**2).sum()
        y.add_(1)
        (z + w).backward()
        assert x.grad.tolist() == [4.0, 12.0]
        v = (y**2).sum()
        with (
            pytest.raises(RuntimeError, match="cannot be nested"),
            graph.allow_mutation_on_saved_tensors(),
        ):
            pass
    with pytest.raises(AssertionError, match="outside of the"):
        v.backward()


def test_a_hook_asks_which_nodes_run() -> None:
    a = torch.ones(3, requires_grad=True)
    b = torch.ones(3, requires_grad=True)
    c, d = a * b, torch.ones(3, requires_grad=True) * 2
    leaf = a.view_as(a).grad_fn.next_functions[0][0]
    nodes = [c.grad_fn, d.grad_fn, leaf]
    told: list[Any] = []

    def hook(grad: Any) -> None:
        told.append((_current_graph_task_id(), [_will_engine_execute_node(n) for n in nodes]))

    c.register_hook(hook)
    assert _current_graph_task_id() == -1
    c.sum().backward(retain_graph=True)
    c.sum().backward(inputs=[b], retain_graph=True)
    c.sum().backward(inputs=[a], retain_graph=True)
    (c.sum() + d.sum()).backward(retain_graph=True)
    assert [flags for _, flags in told] == [
        [True, False, True],
        [True, False, False],
        [True, False, True],
        [True, True, True],
    ]
    numbers = [number for number, _ in told]
    assert numbers[0] >= 0 and numbers == sorted(set(numbers))
    torch.autograd.grad(c.sum(), [b], retain_graph=True)
    assert told[-1][1] == [True, False, False]
    with pytest.raises(RuntimeError, match="node of a leaf does not run in autograd.grad"):
        torch.autograd.grad(c.sum(), [a])
    with pytest.raises(RuntimeError, match="outside of a backward"):
        _will_engine_execute_node(c.grad_fn)
    with pytest.raises(TypeError, match="expects a grad_fn, but got int"):
        _will_engine_execute_node(3)  # pyright: ignore[reportArgumentType]
