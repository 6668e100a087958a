"""Learns to turn noise into a spiral: a diffusion model in a hundred lines.

    python examples/diffusion.py                # learns in seconds, and draws what it makes
    python examples/diffusion.py --steps 9000   # longer, and sharper

Noise is added to the points of a spiral in 100 small steps, until nothing is left of it. A network
learns to tell, from a noisy point and the step it is at, which noise was added. To make new points
it starts from noise alone and takes away, step by step, what it believes to be noise (Ho et al.
2020, "Denoising diffusion probabilistic models").
"""

from __future__ import annotations

import argparse
import math

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

STEPS = 100  # from a point to noise


def spiral(count: int) -> torch.Tensor:
    """Points along a spiral, (count, 2), with a spread near 1."""
    turn = 1.5 * math.pi * (1 + 2 * torch.rand(count))
    points = torch.stack([turn * turn.cos(), turn * turn.sin()], dim=1) / 8
    return points + 0.03 * torch.randn(count, 2)


class Schedule:
    """How much is left of a point, and how much is noise, after each step.

    A step keeps the share alpha of the variance and adds beta = 1 - alpha of noise, so after the
    steps up to t a point is sqrt(kept[t]) * point + sqrt(1 - kept[t]) * noise.
    """

    def __init__(self) -> None:
        self.beta = torch.linspace(1e-4, 0.1, STEPS)
        self.alpha = 1 - self.beta
        self.kept = self.alpha.cumprod(0)

    def add_noise(
        self, points: torch.Tensor, noise: torch.Tensor, step: torch.Tensor
    ) -> torch.Tensor:
        kept = self.kept[step].unsqueeze(1)  # (B, 1)
        return kept.sqrt() * points + (1 - kept).sqrt() * noise


class Denoiser(nn.Module):
    """Tells the noise in points, (B, 2), that are at given steps, (B,)."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.step = nn.Embedding(STEPS, width)
        self.enter = nn.Linear(2, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.leave = nn.Linear(width, 2)

    def forward(self, points: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
        x = self.enter(points) + self.step(step)  # (B, width)
        for layer in self.layers:
            x = x + F.silu(layer(x))
        return self.leave(x)


@torch.no_grad()
def sample(net: Denoiser, schedule: Schedule, count: int) -> torch.Tensor:
    """Makes new points, (count, 2), out of noise."""
    points = torch.randn(count, 2)
    for t in reversed(range(STEPS)):
        noise = net(points, torch.full((count,), t))
        share = schedule.beta[t] / (1 - schedule.kept[t]).sqrt()
        points = (points - share * noise) / schedule.alpha[t].sqrt()
        if t > 0:  # the last step adds none
            points += schedule.beta[t].sqrt() * torch.randn(count, 2)
    return points


def picture(points: torch.Tensor, rows: int = 24, reach: float = 2.2) -> str:
    """Draws points with letters: the more of them at a place, the darker; few are left out."""
    columns = 2 * rows  # letters are twice as high as wide
    x = ((points[:, 0] / reach + 1) / 2 * columns).long()
    y = ((1 - points[:, 1] / reach) / 2 * rows).long()
    seen = (x >= 0) & (x < columns) & (y >= 0) & (y < rows)
    counts = torch.bincount((y * columns + x)[seen], minlength=rows * columns)
    shades = " .:+*#"
    darkest = len(shades) - 1
    usual = counts[counts > 0].double().quantile(0.9)
    places = (counts * darkest / usual).long().clamp(max=darkest).view(rows, columns)
    return "\n".join("".join(shades[i] for i in row).rstrip() for row in places.tolist())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=3000, help="batches to train on")
    options = parser.parse_args()
    torch.manual_seed(0)

    schedule, net = Schedule(), Denoiser()
    average = torch.optim.swa_utils.AveragedModel(  # its points are better than those of any step
        net, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.99)
    )
    optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    for i in range(options.steps):
        points, noise = spiral(512), torch.randn(512, 2)
        step = torch.randint(STEPS, (512,))
        loss = F.mse_loss(net(schedule.add_noise(points, noise, step), step), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        average.update_parameters(net)
        if i % 500 == 0 or i == options.steps - 1:
            print(f"batch {i:4}  loss {loss.item():.3f}", flush=True)

    points = sample(average.module, schedule, 4000)
    print(picture(points))
    # How far new points are from the nearest of the spiral's: noise would be 0.3 away.
    distance = torch.cdist(points, spiral(2000)).min(dim=1).values.median().item()
    print(f"half of the points are within {distance:.3f} of the spiral")


if __name__ == "__main__":
    main()
