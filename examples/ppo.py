"""Learns to balance a pole on a cart, by trying: PPO in one file.

    python examples/ppo.py                  # solved in well under a minute
    python examples/ppo.py --updates 10     # only the beginning

The cart is pushed left or right 50 times a second; a game ends when the pole leans over by 12
degrees, when the cart leaves the track, or after 500 pushes, which is the goal. The physics are
those of Barto, Sutton and Anderson (1983), the method is proximal policy optimization (Schulman et
al. 2017): play with the policy as it is, then make what went better than expected likelier, but
never by much at once.
"""

from __future__ import annotations

import argparse

import rushlight as torch
from rushlight import nn
from rushlight.distributions import Categorical

GAMES = 16  # played side by side, B below
LENGTH = 128  # pushes of each between two updates, T below
LIMIT = 500  # pushes in a game
DISCOUNT = 0.99
SMOOTHING = 0.95  # lambda of the generalized advantage estimate
CLIP = 0.2  # by how much the chance of a push may change in an update


class Carts:
    """Many carts with poles. The state of each: place, speed, lean, and how fast it leans."""

    def __init__(self) -> None:
        self.state = self._start()
        self.age = torch.zeros(GAMES)

    def _start(self) -> torch.Tensor:
        return 0.1 * torch.rand(GAMES, 4) - 0.05

    def push(self, right: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Pushes each cart; returns which failed, and which games ended. These begin anew."""
        _, speed, lean, turn = self.state.unbind(1)
        force = 20.0 * right - 10.0
        sin, cos = lean.sin(), lean.cos()
        pull = (force + 0.05 * turn**2 * sin) / 1.1  # cart 1 kg, pole 0.1 kg, half its length 0.5 m
        turning = (9.8 * sin - cos * pull) / (0.5 * (4 / 3 - 0.1 * cos**2 / 1.1))
        speeding = pull - 0.05 * turning * cos / 1.1
        change = torch.stack([speed, speeding, turn, turning], dim=1)
        self.state = self.state + 0.02 * change
        self.age += 1
        failed = (self.state[:, 0].abs() > 2.4) | (self.state[:, 2].abs() > 0.2095)
        ended = failed | (self.age >= LIMIT)
        self.state = torch.where(ended.unsqueeze(1), self._start(), self.state)
        self.age = torch.where(ended, 0.0, self.age)
        return failed, ended


class Player(nn.Module):
    """Gives the chances of both pushes, and how well it expects to go on."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
        self.value = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))
        for layer in self.modules():
            if isinstance(layer, nn.Linear):
                nn.init.orthogonal_(layer.weight)
                nn.init.zeros_(layer.bias)
        with torch.no_grad():
            self.policy[-1].weight *= 0.01  # so that both pushes begin equally likely

    def forward(self, state: torch.Tensor) -> tuple[Categorical, torch.Tensor]:
        return Categorical(logits=self.policy(state)), self.value(state).squeeze(-1)


@torch.no_grad()
def play(player: Player, carts: Carts) -> tuple[dict[str, torch.Tensor], int]:
    """Plays on for LENGTH pushes; returns what happened, (T * B, ...), and games that ended."""
    states, pushes, chances, values, lasted, games = [], [], [], [], [], 0
    for _ in range(LENGTH):
        choice, value = player(carts.state)
        push = choice.sample()
        states.append(carts.state)
        pushes.append(push)
        chances.append(choice.log_prob(push))
        values.append(value)
        failed, ended = carts.push(push)
        lasted.append(~failed)
        games += int(ended.sum())

    # How much better each push turned out than expected, from the last to the first. A push that
    # keeps the pole up is worth 1 - DISCOUNT, so a pole that never falls is worth 1; so is much of
    # a game that only ended because of its limit.
    value, advantage = player(carts.state)[1], torch.zeros(GAMES)
    advantages = []
    for t in reversed(range(LENGTH)):
        surprise = 1 - DISCOUNT + DISCOUNT * value * lasted[t] - values[t]
        advantage = surprise + DISCOUNT * SMOOTHING * advantage * lasted[t]
        advantages.insert(0, advantage)
        value = values[t]
    history = {
        "state": torch.cat(states),
        "push": torch.cat(pushes),
        "chance": torch.cat(chances),
        "advantage": torch.cat(advantages),
        "worth": torch.cat(advantages) + torch.cat(values),
    }
    return history, games


def improve(
    player: Player, optimizer: torch.optim.Optimizer, batch: dict[str, torch.Tensor]
) -> None:
    choice, value = player(batch["state"])
    ratio = (choice.log_prob(batch["push"]) - batch["chance"]).exp()  # to the policy that played
    gain = batch["advantage"]
    gain = (gain - gain.mean()) / (gain.std() + 1e-8)
    gained = torch.minimum(ratio * gain, ratio.clamp(1 - CLIP, 1 + CLIP) * gain).mean()
    missed = nn.functional.mse_loss(value, batch["worth"])
    loss = missed / 2 - gained - 0.01 * choice.entropy().mean()
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(player.parameters(), 0.5)
    optimizer.step()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=60)
    options = parser.parse_args()
    torch.manual_seed(0)

    player, carts = Player(), Carts()
    optimizer = torch.optim.Adam(player.parameters(), lr=5e-3)
    for update in range(options.updates):
        for group in optimizer.param_groups:
            group["lr"] = 5e-3 * (1 - update / options.updates)
        history, games = play(player, carts)
        for _ in range(4):
            for part in torch.randperm(LENGTH * GAMES).chunk(4):
                improve(player, optimizer, {name: x[part] for name, x in history.items()})
        pushes = min(LIMIT, LENGTH * GAMES / max(1, games))
        if update % 5 == 0 or update == options.updates - 1:
            print(f"update {update:3}  {pushes:5.1f} pushes a game", flush=True)


if __name__ == "__main__":
    main()
