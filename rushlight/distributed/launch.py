"""The launcher's older name: python -m rushlight.distributed.launch --nproc-per-node 2 train.py

It passes --local-rank to the program, unless --use-env is given; see run.py for the rest.
"""

from __future__ import annotations

import sys
import warnings

from rushlight.distributed import run

__all__ = ["main"]


def main(args: list[str] | None = None) -> None:
    """Runs the command line."""
    warnings.warn(
        "rushlight.distributed.launch is deprecated: use rushlight.distributed.run, and read "
        "os.environ['LOCAL_RANK'] instead of --local-rank.",
        FutureWarning,
        stacklevel=2,
    )
    given = sys.argv[1:] if args is None else args
    use_env = [option for option in ("--use-env", "--use_env") if option in given]
    run.main([option for option in given if option not in use_env], not use_env)


if __name__ == "__main__":
    main()
