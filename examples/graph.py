"""Finds the groups in a network of people, from the groups of a few: a graph network in one file.

    python examples/graph.py
    python examples/graph.py --people 3000 --known 10

The people know each other mostly within their group. Nothing is known of a person but whom they
know, and of four in each group, which it is. Each layer of the network gives every person the mean
of what stands for the people they know (Kipf and Welling 2017, "Semi-supervised classification with
graph convolutional networks"), so that after two layers acquaintances of acquaintances count, too.
"""

from __future__ import annotations

import argparse

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

GROUPS = 4


def acquaint(groups: torch.Tensor, inside: float = 12.0, outside: float = 4.0) -> torch.Tensor:
    """Draws who knows whom: pairs (2, count), each in both directions.

    A person knows about `inside` people of their own group and `outside` of the others.
    """
    count = len(groups)
    same = groups.unsqueeze(0) == groups.unsqueeze(1)
    share = count / GROUPS
    chance = torch.where(same, inside / share, outside / (count - share))
    known = torch.bernoulli(chance).triu(1)
    first, second = torch.where(known > 0)
    return torch.stack([torch.cat([first, second]), torch.cat([second, first])])


def mixing_matrix(pairs: torch.Tensor, count: int) -> torch.Tensor:
    """The sparse matrix that mixes what stands for a person with that of the people they know.

    It is D^-1/2 (A + I) D^-1/2, with the pairs in A and the sums of the rows of A + I in D.
    """
    me = torch.arange(count).expand(2, -1)
    to, of = pairs = torch.cat([pairs, me], dim=1)
    scale = torch.bincount(to, minlength=count).rsqrt()
    return torch.sparse_coo_tensor(pairs, scale[to] * scale[of], (count, count)).coalesce()


class GraphNet(nn.Module):
    def __init__(self, people: int, width: int = 32) -> None:
        super().__init__()
        self.person = nn.Embedding(people, width)  # what stands for each person is learned
        self.mix1, self.mix2 = nn.Linear(width, width), nn.Linear(width, GROUPS)
        self.dropout = nn.Dropout(0.5)

    def forward(self, mixing: torch.Tensor) -> torch.Tensor:
        x = self.dropout(self.person.weight)
        x = F.relu(mixing @ self.mix1(x))  # (people, width)
        return mixing @ self.mix2(self.dropout(x))  # (people, groups)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--known", type=int, default=4, help="people of each group it learns from")
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    torch.manual_seed(0)

    groups = torch.arange(options.people) % GROUPS
    pairs = acquaint(groups)
    mixing = mixing_matrix(pairs, options.people)
    known = torch.arange(options.people) < GROUPS * options.known
    print(f"{options.people} people, {pairs.shape[1] // 2} pairs, {known.sum()} groups known")

    net = GraphNet(options.people)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.02, weight_decay=5e-3)
    for step in range(options.steps):
        net.train()
        loss = F.cross_entropy(net(mixing)[known], groups[known])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 0 or step == options.steps - 1:
            net.eval()
            with torch.no_grad():
                right = net(mixing).argmax(dim=1) == groups
            share = right[~known].float().mean().item()
            print(f"step {step:3}  loss {loss.item():.3f}  others told right {share:.1%}")


if __name__ == "__main__":
    main()
