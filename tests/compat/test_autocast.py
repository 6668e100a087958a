"""Under autocast every op gives the dtype that PyTorch's gives."""

import warnings

import numpy as np
import pytest
from compat.libraries import function_of
from compat.test_dtypes import kinds
from ops.matrix import ROWS, SAMPLED, SAMPLES

import rushlight as torch

pytorch = pytest.importorskip("torch")

COMPARED = [
    name
    for name in SAMPLED
    if any(a.dtype == np.float64 for a in SAMPLES[name].all[0].arrays())
    and function_of(pytorch, ROWS[name]) is not None
    and name != "linalg.polar"  # PyTorch's rounds what it computes in float32, ours does not
]

# What ours give for float32 where PyTorch's differ. Networks and cells give the dtype that they
# compute in; PyTorch's multiply in the short dtype too, but then mix in the state of float32.
# Places to read from stay exact, where PyTorch's are a product in the short dtype.
DIFFERENT = {
    **dict.fromkeys(
        ["gru.data", "gru.input", "gru_cell", "lstm.data", "lstm_cell"], "torch.bfloat16"
    ),
    "affine_grid_generator": "torch.float32",
}


def outcome(library, name, dtypes):
    left = list(dtypes)

    def tensor_of(array):
        if array.dtype != np.float64:
            return library.from_numpy(array.copy())
        return library.tensor(array, dtype=getattr(library, left.pop(0) if left else dtypes[-1]))

    filled = SAMPLES[name].all[0].map(tensor_of)
    function = function_of(library, ROWS[name])
    try:
        with warnings.catch_warnings(), library.autocast("cpu"):
            warnings.simplefilter("ignore")
            return kinds(function(*filled.args, **filled.kwargs))
    except (RuntimeError, TypeError, IndexError, ValueError):
        return "raises"


@pytest.mark.parametrize("name", COMPARED)
def test_dtypes_under_autocast_are_those_of_pytorch(name) -> None:
    for dtypes in (["float32"], ["bfloat16"], ["float64"], ["float32", "bfloat16"]):
        ours, theirs = (outcome(library, name, dtypes) for library in (torch, pytorch))
        if name in DIFFERENT and dtypes[0] == "float32":
            assert set(np.atleast_1d(ours)) == {DIFFERENT[name]}, (dtypes, ours, theirs)
        else:
            assert theirs in (ours, "raises"), (dtypes, ours, theirs)


def test_a_model_trains_as_in_pytorch() -> None:
    results = []
    rng = np.random.default_rng(0)
    first, second = rng.normal(size=(16, 8)) / 3, rng.normal(size=(4, 16)) / 3
    x, y = rng.normal(size=(32, 8)), rng.integers(0, 4, size=32)
    for library in (torch, pytorch):
        nn = library.nn
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.LayerNorm(16), nn.Linear(16, 4))
        with library.no_grad():
            model[0].weight.copy_(library.tensor(first))
            model[3].weight.copy_(library.tensor(second))
            for layer in (model[0], model[3]):
                layer.bias.zero_()
        optimizer = library.optim.SGD(model.parameters(), lr=0.1)
        losses = []
        for _ in range(20):
            optimizer.zero_grad()
            with library.autocast("cpu"):
                out = model(library.tensor(x, dtype=library.float32))
                loss = nn.functional.cross_entropy(out, library.tensor(y))
            assert (str(out.dtype), str(loss.dtype)) == ("torch.bfloat16", "torch.float32")
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert str(model[0].weight.grad.dtype) == "torch.float32"
        results.append(losses)
    np.testing.assert_allclose(*results, rtol=2e-2)
