"""The error of save and load."""

from __future__ import annotations

__all__ = ["CheckpointException"]


class CheckpointException(RuntimeError):
    """Raised by save and load on all ranks when one could not do its part.

    Args:
        msg: what was to be done.
        failures: what went wrong, by rank.
    """

    def __init__(self, msg: str, failures: dict[int, str]) -> None:
        super().__init__(msg, failures)
        self.failures = failures

    def __str__(self) -> str:
        told = "; ".join(f"rank {rank}: {text}" for rank, text in self.failures.items())
        return f"{self.args[0]}: {told}"
