"""The benchmark cases of the tape: what recording, walking and freeing it costs."""

from __future__ import annotations

from typing import Any

from cases.case import Call, case


@case("chain of 100 products, forward + backward, 8 floats", "ops", 0.35)
def chain_backward(torch: Any) -> Call:
    x = torch.ones(8, requires_grad=True)

    def call() -> None:
        y = x
        for _ in range(100):
            y = y * 1.01
        y.sum().backward()

    return call


@case("1,000 leaves into one sum, forward + backward", "ops", 0.35)
def fan_in_backward(torch: Any) -> Call:
    leaves = [torch.ones(8, requires_grad=True) for _ in range(1000)]
    return lambda: torch.stack(leaves).sum().backward()


@case("one leaf used 1,000 times, forward + backward", "ops", 0.35)
def fan_out_backward(torch: Any) -> Call:
    x = torch.ones(8, requires_grad=True)
    return lambda: torch.stack([x * 2.0 for _ in range(1000)]).sum().backward()


@case("backward of 64 paths that split and join", "ops", 0.35)
def diamond_backward(torch: Any) -> Call:
    x = torch.ones(8, requires_grad=True)

    def call() -> None:
        y = x
        for _ in range(64):
            y = (y + y) * 0.5
        y.sum().backward()

    return call


@case("grad of grad, tanh(x)^2, 8 floats", "ops", 0.35)
def double_backward(torch: Any) -> Call:
    x = torch.randn(8, requires_grad=True)

    def call() -> None:
        y = x.tanh()
        (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
        g.sum().backward()

    return call


@case("10 writes through views, forward + backward", "ops", 0.35)
def views_backward(torch: Any) -> Call:
    x = torch.ones(10, 8, requires_grad=True)

    def call() -> None:
        y = x * 1.0
        for k in range(10):
            y[k].mul_(2.0)
        y.sum().backward()

    return call


def per_sample(torch: Any, net: Any, x: Any) -> Call:
    """The gradient of each sample by itself, as in differential privacy."""
    func, labels = torch.func, torch.randint(0, 10, (len(x),))
    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(parameters: Any, x: Any, label: Any) -> Any:
        logits = func.functional_call(net, parameters, (x.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(logits, label.unsqueeze(0))

    gradients = func.vmap(func.grad(loss), in_dims=(None, 0, 0))
    return lambda: gradients(parameters, x, labels)


@case("gradients per sample of an MLP 64-128-10, 256 samples", "models", 1.2)
def per_sample_mlp(torch: Any) -> Call:
    nn = torch.nn
    net = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 10))
    return per_sample(torch, net, torch.randn(256, 64))


@case("gradients per sample of a CNN, 256 images of 14x14", "models", 1.2)
def per_sample_cnn(torch: Any) -> Call:
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(288, 10)
    )
    return per_sample(torch, net, torch.randn(256, 1, 14, 14))
