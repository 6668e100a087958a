"""How this copy of Rushlight was built and what it runs on, as text for reports of errors."""

from __future__ import annotations

import os
import platform

import rushlight as rl


def show() -> str:
    """Returns the version, the platform and the libraries within, a line each.

    Example:
        >>> torch.__config__.show().startswith("Rushlight ")
        True
    """
    one_dnn = "with" if rl.backends.mkldnn.is_available() else "without"
    return (
        f"Rushlight {rl.__version__}\n"
        f"  - Python {platform.python_version()} on {platform.platform()}\n"
        f"  - instruction set {rl.backends.cpu.get_cpu_capability()}, {one_dnn} oneDNN\n"
    )


def parallel_info() -> str:
    """Returns how many threads ops use, and how many processors there are.

    Example:
        >>> "torch.get_num_threads()" in torch.__config__.parallel_info()
        True
    """
    return f"torch.get_num_threads() : {rl.get_num_threads()}\nprocessors : {os.cpu_count()}\n"
