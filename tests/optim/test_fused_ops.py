"""The ops behind the optimizers: what they refuse, and where they write."""

import pytest

import rushlight as torch
from rushlight import _C


def adam(params, grads, means, squares, largest=(), amsgrad=False, differentiable=False):
    return _C._fused_adam_(
        params, grads, means, squares, list(largest), 0.1, 0.9, 0.99, 1e-8, 0.0, False, amsgrad,
        False, 1.0, differentiable,
    )  # fmt: skip


def zeros(*shape, **options):
    return [torch.zeros(shape, **options)]


@pytest.mark.parametrize("differentiable", [False, True])
@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ((zeros(3), [], zeros(3), zeros(3)), "got 1 parameters, but 0 gradients or states"),
        ((zeros(3), zeros(3), zeros(3), zeros(3) * 2), "got 1 parameters, but 2 gradients"),
        ((zeros(3), zeros(3), zeros(3), zeros(3), [], True), "but 0 gradients or states"),
    ],
)
def test_lists_must_be_of_one_length(lists, message, differentiable) -> None:
    with pytest.raises(RuntimeError, match=message):
        adam(*lists, differentiable=differentiable)


@pytest.mark.parametrize(
    ("state", "error", "message"),
    [
        (zeros(4), RuntimeError, r"parameter 0 has shape \(3,\) and dtype float32"),
        (zeros(3, dtype=torch.float64), RuntimeError, "its gradient or state has not"),
        (zeros(3, device="meta"), RuntimeError, "its gradient or state is on meta"),
        ([torch.zeros(1).expand(3)], RuntimeError, "a single memory location"),
        ([torch.zeros(3).to_sparse()], NotImplementedError, "layout sparse_coo"),
    ],
)
def test_state_must_be_like_the_parameter(state, error, message) -> None:
    with pytest.raises(error, match=message):
        adam(zeros(3), zeros(3), zeros(3), state)


def test_integers_are_refused() -> None:
    each = zeros(3, dtype=torch.int64)
    with pytest.raises(RuntimeError, match="parameter 0 is not a floating-point or complex tensor"):
        adam(each, each, each, each)


def test_nothing_and_parameters_without_memory_are_fine() -> None:
    assert adam([], [], [], []) == 0
    assert adam([], [], [], [], differentiable=True) == 0
    assert adam(*[zeros(3, device="meta") for _ in range(4)]) == 3


def test_many_parameters_of_all_sizes_are_covered_once() -> None:
    torch.manual_seed(0)
    params = [torch.zeros(n) for n in (0, 1, 7, 40_000, 3, 16_384, 0, 5)]
    grads = [torch.randn(param.shape) for param in params]
    count = _C._fused_sgd_(params, grads, [], 1.0, 0, 0, 0, False, False, False)
    assert count == sum(param.numel() for param in params)
    assert all(torch.equal(p, -g) for p, g in zip(params, grads, strict=True))


@pytest.mark.parametrize("name", ["SGD", "SparseAdam", "Adagrad"])
def test_a_sparse_embedding_trains_only_the_rows_that_were_used(name) -> None:
    table = torch.nn.Embedding(50, 4, sparse=True)
    before = table.weight.detach().clone()
    optimizer = getattr(torch.optim, name)(table.parameters(), lr=0.1)
    for row in (3, 9):
        optimizer.zero_grad()
        table(torch.tensor([row, 5, 5])).pow(2).sum().backward()
        optimizer.step()
    changed = (table.weight.detach() != before).any(1).nonzero().flatten()
    assert changed.tolist() == [3, 5, 9]


def test_a_state_may_shorten_the_list_of_states() -> None:
    class Shortening(dict):
        def __getitem__(self, key):
            states.clear()
            return torch.tensor(0.0)

    states = [Shortening(), {"step": torch.tensor(0.0)}]
    with pytest.raises(IndexError):
        _C._count_steps(states)
