"""The other process of the cases that need two: `peer.py MODULE PORT COUNT`.

It reduces a tensor of COUNT floats again and again, and so always waits for the one that is timed.
"""

from __future__ import annotations

import importlib
import sys

from cases.distributed import join


def main() -> None:
    torch = importlib.import_module(sys.argv[1])
    dist = join(torch, int(sys.argv[2]), 1)
    x = torch.zeros(int(sys.argv[3]))
    while True:
        try:
            dist.all_reduce(x)
        except RuntimeError:
            return  # the other has ended


if __name__ == "__main__":
    main()
