"""The launcher for programs that start the processes of a job themselves."""

from rushlight.distributed.launcher.api import LaunchConfig, elastic_launch

__all__ = ["LaunchConfig", "elastic_launch"]
