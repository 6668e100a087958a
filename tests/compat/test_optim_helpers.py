"""What libraries import from torch.optim.optimizer: optimizers written with it learn the same."""

import importlib
from types import SimpleNamespace

import pytest

import rushlight

pytorch = pytest.importorskip("torch")
HELPERS = SimpleNamespace(
    rushlight=importlib.import_module("rushlight.optim.optimizer"),
    torch=importlib.import_module("torch.optim.optimizer"),
)


def made_optimizer(torch, optim):
    """A subclass in the style of PyTorch's own optimizers."""

    class Momentum(optim.Optimizer):
        __doc__ = f"""Args:
            {optim._params_doc}
            {optim._foreach_doc}
            {optim._fused_doc}
            {optim._maximize_doc}
            {optim._capturable_doc}
            {optim._differentiable_doc}
        """

        def __init__(self, params, lr, differentiable=False):
            super().__init__(params, {"lr": lr, "differentiable": differentiable})

        @optim._use_grad_for_differentiable
        def step(self, closure=None):
            for group in self.param_groups:
                params = [p for p in group["params"] if p.grad is not None]
                steps = [
                    self.state[p].setdefault(
                        "step", torch.tensor(0.0, dtype=optim._get_scalar_dtype())
                    )
                    for p in params
                ]
                means = [self.state[p].setdefault("mean", torch.zeros_like(p)) for p in params]
                grads = [p.grad for p in params]
                update(params, grads, means, steps, lr=optim._to_scalar(group["lr"]))

    @optim._disable_dynamo_if_unsupported()
    def update(params, grads, means, state_steps, *, lr):
        fused, foreach = optim._default_to_fused_or_foreach(params, False, use_fused=False)
        assert not fused and not foreach
        groups = optim.Optimizer._group_tensors_by_device_and_dtype(
            [params, grads, means, state_steps], with_indices=True
        )
        for (some, their_grads, their_means, their_steps), _ in groups.values():
            optim._view_as_real(some, their_grads, their_means)
            for p, g, m, step in zip(some, their_grads, their_means, their_steps, strict=True):
                step += 1
                m.mul_(0.9).add_(g)
                p.sub_(m * (lr / optim._get_value(step)))

    return Momentum


def learned(name, framework):
    optim = getattr(HELPERS, name)
    params = [
        framework.nn.Parameter(framework.tensor(values, dtype=getattr(framework, dtype)))
        for values, dtype in (
            ([1.0, -2.0], "float32"),
            ([0.5], "float64"),
            ([1 + 2j, 0.5 - 1j], "complex64"),
        )
    ]
    optimizer = made_optimizer(framework, optim)(params, lr=framework.tensor([0.1]))
    for _ in range(3):
        optimizer.zero_grad()
        sum((p * p.conj()).real.sum() for p in params).backward()
        optimizer.step()
    assert all(p.is_leaf for p in params)
    return [p.tolist() for p in params]


def test_an_optimizer_learns_the_same():
    for mine, theirs in zip(
        learned("rushlight", rushlight), learned("torch", pytorch), strict=True
    ):
        assert mine == pytest.approx(theirs, rel=1e-6)


def test_choices_are_the_same():
    for options in (
        {"differentiable": True, "use_fused": True},
        {"differentiable": False, "use_fused": True},
        {"differentiable": False},
    ):
        results = []
        for name, framework in (("rushlight", rushlight), ("torch", pytorch)):
            params = [framework.nn.Parameter(framework.ones(2)), None]
            results.append(getattr(HELPERS, name)._default_to_fused_or_foreach(params, **options))
        assert results[0] == results[1]
    for name, framework in (("rushlight", rushlight), ("torch", pytorch)):
        optim = getattr(HELPERS, name)
        optim._device_dtype_check_for_fused(framework.ones(2))
        with pytest.raises(RuntimeError, match="`fused=True` requires all the params"):
            optim._device_dtype_check_for_fused(framework.ones(2, dtype=framework.int64))
        assert "cuda" in optim._get_capturable_supported_devices()
        assert str(optim._get_scalar_dtype()) == "torch.float32"
        assert repr(optim.required) == "<required parameter>"


def test_a_differentiable_step_is_recorded():
    for name, framework in (("rushlight", rushlight), ("torch", pytorch)):
        param = framework.ones(2, requires_grad=True).clone()
        param.grad = framework.ones(2)
        made_optimizer(framework, getattr(HELPERS, name))([param], 0.1, differentiable=True).step()
        assert param.tolist() == pytest.approx([0.9, 0.9]) and param.grad_fn is not None
