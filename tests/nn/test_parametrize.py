"""Parametrizations, old norms, pruning and fusion, as far as they need no other library."""

import copy
import pickle

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.utils import parametrizations, parametrize, prune
from rushlight.nn.utils.weight_norm import WeightNorm


class Doubled(nn.Module):
    def forward(self, x):
        return 2 * x

    def right_inverse(self, x):
        return x / 2


def test_a_parametrized_weight_is_computed_trained_and_removed() -> None:
    layer = nn.Linear(2, 2, bias=False)
    weight = layer.weight.detach().clone()
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert torch.allclose(layer.weight, weight)
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, nn.Linear)
    layer(torch.ones(1, 2)).sum().backward()
    assert layer.parametrizations.weight.original.grad.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    layer.weight = torch.eye(2)
    assert layer.parametrizations.weight.original.tolist() == [[0.5, 0.0], [0.0, 0.5]]
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert list(layer.state_dict()) == ["weight"] and layer.weight.is_leaf


def test_functional_call_may_replace_the_computed_weight() -> None:
    layer = parametrize.register_parametrization(nn.Linear(2, 2, bias=False), "weight", Doubled())
    before = layer.weight.detach()
    new = {"weight": torch.ones(2, 2)}
    assert torch.func.functional_call(layer, new, torch.ones(1, 2)).tolist() == [[2.0, 2.0]]
    assert torch.equal(layer.weight, before)


def test_copies_of_parametrized_modules_have_parameters_of_their_own() -> None:
    layer = parametrizations.weight_norm(nn.Linear(2, 3))
    other = copy.deepcopy(layer)
    assert torch.equal(other.weight, layer.weight)
    with torch.no_grad():
        other.parametrizations.weight.original0.zero_()
    assert other.weight.abs().sum() == 0 and layer.weight.abs().sum() > 0
    with pytest.raises(RuntimeError, match=r"only supported through state_dict\(\)"):
        pickle.dumps(layer)
    other.load_state_dict(layer.state_dict())
    assert torch.equal(other.weight, layer.weight)


def test_a_copy_keeps_its_parametrizations_when_the_original_loses_its_own() -> None:
    layer = parametrizations.weight_norm(nn.Linear(2, 3))
    averaged = torch.optim.swa_utils.AveragedModel(layer)
    before = layer.weight.detach()
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear
    assert torch.equal(averaged.module.weight, before)
    assert averaged(torch.ones(1, 2)).shape == (1, 3)
    twin = copy.deepcopy(averaged.module)
    parametrizations.spectral_norm(averaged.module, "bias")
    assert isinstance(twin.bias, nn.Parameter)
    twin.bias = nn.Parameter(torch.ones(3))
    parametrize.remove_parametrizations(twin, "weight")
    assert type(twin) is nn.Linear and torch.equal(twin.weight, before)


def test_moving_and_converting_reaches_the_originals() -> None:
    layer = parametrizations.spectral_norm(nn.Linear(3, 3)).double()
    assert layer.weight.dtype == torch.float64
    assert all(t.dtype == torch.float64 for t in layer.state_dict().values())


@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder"])
@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
def test_orthogonal_weights_stay_orthogonal_while_they_are_trained(orthogonal_map, shape) -> None:
    layer = parametrizations.orthogonal(nn.Linear(*shape), orthogonal_map=orthogonal_map)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    before = layer.weight.detach()
    for _ in range(3):
        optimizer.zero_grad()
        (
            layer.weight * torch.arange(15 if 3 in shape else 16.0).reshape(layer.weight.shape)
        ).sum().backward()
        optimizer.step()
    w = layer.weight
    gram = w @ w.mT if w.shape[0] <= w.shape[1] else w.mT @ w
    assert torch.allclose(gram, torch.eye(min(shape)), atol=1e-4)
    assert not torch.allclose(before, w)


def test_old_norms_are_hooks_that_programs_find_and_delete() -> None:
    with pytest.warns(FutureWarning, match="parametrizations.weight_norm"):
        layer = nn.utils.weight_norm(nn.Linear(2, 3))
    (hook,) = layer._forward_pre_hooks.values()
    assert isinstance(hook, WeightNorm)
    nn.utils.remove_weight_norm(layer)
    assert not layer._forward_pre_hooks and layer._hooks is not None
    layer(torch.zeros(1, 2))
    assert layer._hooks is None  # the short way through __call__ is back
    norm = nn.utils.spectral_norm(nn.Linear(4, 4))
    again = pickle.loads(pickle.dumps(norm.eval()))
    assert torch.allclose(again(torch.ones(1, 4)), norm(torch.ones(1, 4)))


def test_pruning_again_keeps_what_was_pruned() -> None:
    layer = nn.Linear(4, 4)
    prune.random_unstructured(layer, "weight", amount=8)
    first = layer.weight_mask.clone()
    prune.l1_unstructured(layer, "weight", amount=0.5)
    assert layer.weight_mask.sum() == 4 and bool((layer.weight_mask <= first).all())
    assert len(layer._forward_pre_hooks) == 1
    with pytest.raises(IndexError, match="Invalid index 5"):
        prune.ln_structured(layer, "weight", 1, 2, 5)
    assert len(next(iter(layer._forward_pre_hooks.values()))) == 2
    other = copy.deepcopy(prune.remove(layer, "weight"))
    assert (other.weight == 0).sum() == 12 and not prune.is_pruned(other)


def test_pruning_methods_of_ones_own_take_amounts_as_the_others() -> None:
    class Last(prune.BasePruningMethod):
        PRUNING_TYPE = "unstructured"

        def __init__(self, amount):
            prune._validate_pruning_amount_init(amount)
            self.amount = amount

        def compute_mask(self, t, default_mask):
            prune._validate_pruning_amount(self.amount, t.nelement())
            mask = default_mask.clone()
            mask[t.nelement() - prune._compute_nparams_toprune(self.amount, t.nelement()) :] = 0
            return mask

    layer = nn.Linear(1, 5)
    Last.apply(layer, "bias", 0.4)
    assert layer.bias_mask.tolist() == [1, 1, 1, 0, 0]
    Last.apply(layer, "bias", 1)
    assert layer.bias_mask.tolist() == [1, 1, 0, 0, 0]
    with pytest.raises(ValueError, match="amount=3 should be smaller"):
        Last.apply(layer, "bias", 3)
    with pytest.raises(TypeError, match="Invalid type"):
        Last("2")


def test_structured_methods_of_ones_own_look_at_channels_as_the_others() -> None:
    class Largest(prune.BasePruningMethod):
        PRUNING_TYPE, dim = "structured", 0

        def compute_mask(self, t, default_mask):
            prune._validate_structured_pruning(t)
            prune._validate_pruning_dim(t, self.dim)
            mask = default_mask.clone()
            mask[prune._compute_norm(t, 2, self.dim).argmax()] = 0
            return mask

    layer = nn.Linear(2, 3)
    layer.weight.data = torch.tensor([[1.0, 2], [3, 0], [0, 1]])
    Largest.apply(layer, "weight")
    assert layer.weight_mask.tolist() == [[1, 1], [0, 0], [1, 1]]
    with pytest.raises(ValueError, match="multidimensional"):
        Largest.apply(layer, "bias")
    Largest.dim = 2
    with pytest.raises(IndexError, match="Invalid index 2"):
        prune._validate_pruning_dim(layer.weight, Largest.dim)


def test_a_fused_layer_does_what_two_did() -> None:
    conv, norm = nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3)
    for _ in range(3):
        norm(conv(torch.randn(4, 2, 6, 6)))
    conv.eval(), norm.eval()
    x = torch.randn(2, 2, 6, 6)
    fused = nn.utils.fuse_conv_bn_eval(conv, norm)
    assert torch.allclose(fused(x), norm(conv(x)), atol=1e-5)
    assert torch.nn.utils.skip_init(nn.Linear, 2, 3, bias=False).weight.shape == (3, 2)
