"""Gradients of each sample, against those of batches of one."""

import pytest

import rushlight as torch
from rushlight import nn
from rushlight.nn.utils._per_sample_grad import call_for_per_sample_grads


class Twice(nn.Module):
    """One layer used twice, and one that is not learned."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.fixed = nn.Linear(3, 3), nn.Linear(3, 3).requires_grad_(False)

    def forward(self, x):
        return self.layer(self.fixed(self.layer(x)).tanh())


def image_net():
    layers = nn.Conv2d(2, 4, 3, padding="same"), nn.GroupNorm(2, 4), nn.ReLU(), nn.MaxPool2d(2)
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16, 2))


CASES = {
    "mlp": (lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), (5, 3)),
    "rows": (lambda: nn.Linear(3, 2, bias=False), (4, 6, 3)),
    "images": (image_net, (3, 2, 4, 4)),
    "signals": (
        lambda: nn.Sequential(
            nn.Conv1d(4, 4, 3, groups=2, padding=1, padding_mode="circular"),
            nn.InstanceNorm1d(4, affine=True),
        ),
        (3, 4, 8),
    ),
    "volumes": (
        lambda: nn.Sequential(nn.Conv3d(2, 3, 2, stride=2), nn.LayerNorm([3, 2, 2, 2])),
        (3, 2, 4, 4, 4),
    ),
    "tokens": (lambda: nn.Sequential(nn.Embedding(7, 3, padding_idx=1), nn.Linear(3, 2)), None),
    "twice": (Twice, (5, 3)),
    "none": (lambda: nn.Linear(3, 2), (0, 3)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_each_sample_has_the_gradient_of_a_batch_of_one(name, reduction) -> None:
    torch.manual_seed(0)
    make, shape = CASES[name]
    net = make()
    x = torch.randint(7, (4, 5)) if shape is None else torch.randn(shape, requires_grad=True)
    y = call_for_per_sample_grads(net, loss_reduction=reduction)(x)
    torch.testing.assert_close(y, net(x))
    factor = torch.randn(y.shape)
    (y * factor).sum().backward()

    learned = [p for p in net.parameters() if p.requires_grad]
    assert all(p.grad is None for p in net.parameters())
    assert all(p.grad_sample.shape == (len(x), *p.shape) for p in learned)
    for i in range(len(x)):
        loss = (net(x[i : i + 1]) * factor[i : i + 1]).sum()
        for p, grad in zip(learned, torch.autograd.grad(loss, learned), strict=True):
            scale = len(x) if reduction == "mean" else 1
            torch.testing.assert_close(p.grad_sample[i], grad * scale, rtol=1e-4, atol=1e-5)
    if shape is not None:
        (expected,) = torch.autograd.grad((net(x) * factor).sum(), x)
        torch.testing.assert_close(x.grad, expected)


def test_samples_may_lie_along_the_second_dim() -> None:
    net, x = nn.Linear(3, 2), torch.randn(4, 5, 3)
    call_for_per_sample_grads(net, batch_first=False)(x).sum().backward()
    torch.testing.assert_close(net.weight.grad_sample, x.sum(0)[:, None].expand(5, 2, 3))


def test_arguments_that_cannot_be_followed_are_refused() -> None:
    net, x = nn.Linear(3, 3), torch.zeros(4, 3)
    for arguments, said in (
        ({"loss_reduction": "none"}, "to be sum or mean, got none"),
        ({"batch_size": 0}, "must be positive, got 0"),
        ({"batch_size": 2.0}, "must be None or an integer, got float"),
    ):
        with pytest.raises(RuntimeError, match=said):
            call_for_per_sample_grads(net, **arguments)
    with pytest.raises(RuntimeError, match="must be nn.Module, got function"):
        call_for_per_sample_grads(lambda x: x)  # pyright: ignore[reportArgumentType]
    with pytest.raises(RuntimeError, match="input batch size of 4 .* batch size 3"):
        call_for_per_sample_grads(net, batch_size=3)(x)
    with pytest.raises(RuntimeError, match="without a batch dimension"):
        call_for_per_sample_grads(net)(x[0])
    with pytest.raises(RuntimeError, match=r"sizes \[2, 4\] were found"):
        call_for_per_sample_grads(nn.Bilinear(3, 3, 1))(x, x[:2])
    with pytest.raises(RuntimeError, match="cannot handle function batch_norm"):
        call_for_per_sample_grads(nn.BatchNorm1d(3))(x)
    call_for_per_sample_grads(net)(x).sum().backward()
    with pytest.raises(RuntimeError, match="'weight' has a grad_sample already"):
        call_for_per_sample_grads(net)
