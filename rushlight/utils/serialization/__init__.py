"""Settings of saving and loading, in rushlight.utils.serialization.config."""

from rushlight.utils.serialization import config

__all__ = ["config"]
