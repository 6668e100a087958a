"""Modules as functions in the way of the package functorch."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight._functorch.package import (
    FunctionalModule,
    FunctionalModuleWithBuffers,
    combine_state_for_ensemble,
    make_functional,
    make_functional_with_buffers,
    vmap,
)


def test_parameters_and_buffers_are_arguments() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).eval()
    function, params, buffers = make_functional_with_buffers(net)
    x = torch.randn(4, 2)
    assert torch.equal(function(params, buffers, x), net(x))
    assert not function([torch.zeros_like(p) for p in params], buffers, x).any()
    function(params, buffers, x).sum().backward()
    assert params[0].grad is not None and net[0].weight.grad is None
    with pytest.raises(ValueError, match="use make_functional_with_buffers"):
        make_functional(net)


def test_parameters_need_not_require_gradients() -> None:
    _, params = make_functional(nn.Linear(2, 3), disable_autograd_tracking=True)
    assert not any(p.requires_grad for p in params)


def test_an_ensemble_is_one_call() -> None:
    models = [nn.Linear(2, 3) for _ in range(4)]
    function, params, buffers = combine_state_for_ensemble(models)
    x = torch.randn(5, 2)
    expected = torch.stack([model(x) for model in models])
    results = vmap(function, in_dims=(0, 0, None))(params, buffers, x)
    torch.testing.assert_close(results, expected)


def test_functions_of_modules_have_no_parameters_of_their_own() -> None:
    net = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).eval()
    function, _, _ = make_functional_with_buffers(net)
    assert isinstance(function, FunctionalModuleWithBuffers)
    assert not list(function.parameters()) and not list(function.buffers())
    plain, params = make_functional(net[0])
    x = torch.ones(4, 2)
    assert isinstance(plain, FunctionalModule) and torch.equal(plain(params, x), net[0](x))
