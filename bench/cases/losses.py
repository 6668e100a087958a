"""Losses with their gradients."""

from __future__ import annotations

from typing import Any

from cases.case import Call, case

MILLION = 1024 * 1024


def of_elements(torch: Any, name: str, target: Any, **settings: Any) -> Call:
    """One loss of a million elements and its gradient."""
    x = torch.randn(MILLION, requires_grad=True)
    function = getattr(torch.nn.functional, name)

    def step() -> None:
        x.grad = None
        function(x, target, **settings).backward()

    return step


@case("cross_entropy, forward + backward, 4096x1000", "ops", 0.9)
def cross_entropy(torch: Any) -> Call:
    x = torch.randn(4096, 1000, requires_grad=True)
    labels = torch.randint(0, 1000, (4096,))

    def step() -> None:
        x.grad = None
        torch.nn.functional.cross_entropy(x, labels).backward()

    return step


@case("cross_entropy smoothed, forward + backward, 4096x1000", "ops", 0.9)
def cross_entropy_smoothed(torch: Any) -> Call:
    x = torch.randn(4096, 1000, requires_grad=True)
    labels = torch.randint(0, 1000, (4096,))

    def step() -> None:
        x.grad = None
        torch.nn.functional.cross_entropy(x, labels, label_smoothing=0.1).backward()

    return step


@case("cross_entropy, forward + backward, 64x10", "ops", 0.5)
def cross_entropy_small(torch: Any) -> Call:
    x = torch.randn(64, 10, requires_grad=True)
    labels = torch.randint(0, 10, (64,))

    def step() -> None:
        x.grad = None
        torch.nn.functional.cross_entropy(x, labels).backward()

    return step


@case("cross_entropy of images, forward + backward, 8x21x128x128", "ops", 1.0)
def cross_entropy_images(torch: Any) -> Call:
    x = torch.randn(8, 21, 128, 128, requires_grad=True)
    labels = torch.randint(0, 21, (8, 128, 128))

    def step() -> None:
        x.grad = None
        torch.nn.functional.cross_entropy(x, labels).backward()

    return step


@case("nll_loss, forward + backward, 4096x256", "ops", 1.0)
def nll_loss(torch: Any) -> Call:
    x = torch.randn(4096, 256).log_softmax(1).requires_grad_()
    labels = torch.randint(0, 256, (4096,))

    def step() -> None:
        x.grad = None
        torch.nn.functional.nll_loss(x, labels).backward()

    return step


@case("mse_loss, forward + backward, 1M", "ops", 1.0)
def mse_loss(torch: Any) -> Call:
    return of_elements(torch, "mse_loss", torch.randn(MILLION))


@case("smooth_l1_loss, forward + backward, 1M", "ops", 1.0)
def smooth_l1_loss(torch: Any) -> Call:
    return of_elements(torch, "smooth_l1_loss", torch.randn(MILLION))


@case("bce_with_logits, forward + backward, 1M", "ops", 1.0)
def bce_with_logits(torch: Any) -> Call:
    return of_elements(torch, "binary_cross_entropy_with_logits", torch.rand(MILLION))


@case("kl_div, forward + backward, 1M", "ops", 1.0)
def kl_div(torch: Any) -> Call:
    return of_elements(torch, "kl_div", torch.rand(MILLION), reduction="sum")


@case("ctc_loss, forward + backward, T=100 N=16 C=30 S=20", "ops", 1.0)
def ctc_loss(torch: Any) -> Call:
    x = torch.randn(100, 16, 30).log_softmax(2).requires_grad_()
    targets = torch.randint(1, 30, (16, 20))
    lengths, sizes = torch.full((16,), 100), torch.full((16,), 20)

    def step() -> None:
        x.grad = None
        torch.nn.functional.ctc_loss(x, targets, lengths, sizes).backward()

    return step
