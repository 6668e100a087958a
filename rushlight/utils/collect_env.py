"""What a report of an error should say about the machine.

`python -m rushlight.utils.collect_env` prints it.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys

import rushlight as rl

__all__ = ["get_pretty_env_info", "main"]

_PACKAGES = (
    "numpy",
    "scipy",
    "onednn-cpu-gomp",
    "scipy-openblas32",
    "nvidia-cublas",
    "nvidia-cuda-nvrtc",
    "nvidia-cudnn-cu12",
    "nvidia-cudnn-cu13",
    "torch",
)


def get_pretty_env_info() -> str:
    """Returns the versions of the package, Python, libraries and system, and the processors.

    Example:
        >>> "Python version:" in torch.utils.collect_env.get_pretty_env_info()
        True
    """
    facts = {
        "Rushlight version": rl.__version__,
        "OS": platform.platform(),
        "Python version": sys.version.replace("\n", " "),
        "CPU": _processor(),
        "CPUs to use": f"{len(os.sched_getaffinity(0))} of {os.cpu_count()}",
        "Threads of ops": rl.get_num_threads(),
        "Instruction set": rl.backends.cpu.get_cpu_capability(),
        "Is oneDNN available": rl.backends.mkldnn.is_available(),
        "Is CUDA available": rl.cuda.is_available(),
    }
    if rl.cuda.is_available():
        names = [rl.cuda.get_device_name(i) for i in range(rl.cuda.device_count())]
        facts["GPU models and configuration"] = ", ".join(names)
        cudnn = rl.backends.cudnn
        facts["cuDNN version"] = cudnn.version() if cudnn.is_available() else None
    lines = [f"{name}: {value}" for name, value in facts.items()]
    return "\n".join([*lines, "", "Versions of relevant libraries:", *_versions()])


def _processor() -> str:
    """The processor's name, as the system knows it."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def _versions() -> list[str]:
    """The libraries that are installed, with their versions."""
    found = []
    for package in _PACKAGES:
        try:
            found.append(f"[pip3] {package}=={importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def main() -> None:
    """Prints it."""
    print("Collecting environment information...")
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
