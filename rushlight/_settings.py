"""Global settings, the default device, and facts about the build."""

from __future__ import annotations

import warnings

from rushlight import _C

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

    from rushlight import device

_DEBUG_MODES = ("default", "warn", "error")

_settings: dict[str, Any] = {
    "deterministic": False,
    "warn_only": False,
    "precision": "highest",
    "warn_always": False,
    "interop_threads": None,
}

# Determinism and precision


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Notes the wish for deterministic algorithms: on the CPU all of them are.

    Raises:
        TypeError: if mode or warn_only is not a bool.
    """
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(
                f"use_deterministic_algorithms: argument '{name}' must be bool, not "
                f"{type(value).__name__}"
            )
    _settings.update(deterministic=bool(mode), warn_only=bool(warn_only))


def are_deterministic_algorithms_enabled() -> bool:
    """Returns what use_deterministic_algorithms was told."""
    return _settings["deterministic"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Returns whether use_deterministic_algorithms was told to warn only."""
    return _settings["warn_only"]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """Does what use_deterministic_algorithms does, by one word.

    Args:
        debug_mode: "default" or 0 for no wish, "warn" or 1, "error" or 2.

    Raises:
        RuntimeError: if it is none of these.
        TypeError: if it is neither a word nor an int.

    Example:
        >>> torch.set_deterministic_debug_mode("warn")
        >>> torch.get_deterministic_debug_mode()
        1
        >>> torch.set_deterministic_debug_mode(0)
    """
    mode = read_debug_mode(debug_mode)
    use_deterministic_algorithms(mode > 0, warn_only=mode == 1)


def read_debug_mode(debug_mode: int | str) -> int:
    """Returns 0, 1 or 2, for these or for "default", "warn" and "error"."""
    if not isinstance(debug_mode, str | int):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if isinstance(debug_mode, str):
        if debug_mode not in _DEBUG_MODES:
            raise RuntimeError(
                f"invalid value of debug_mode, expected one of `default`, `warn`, `error`, but got "
                f"{debug_mode}"
            )
        return _DEBUG_MODES.index(debug_mode)
    if debug_mode not in (0, 1, 2):
        raise RuntimeError(
            f"invalid value of debug_mode, expected 0, 1, or 2, but got {debug_mode}"
        )
    return debug_mode


def get_deterministic_debug_mode() -> int:
    """Returns 0 for no wish, 1 for warnings, 2 for errors."""
    return _settings["deterministic"] * (1 if _settings["warn_only"] else 2)


def set_float32_matmul_precision(precision: str) -> None:
    """Sets how float32 products may be computed: 'highest', 'high' or 'medium'.

    On the CPU products always have full precision; on CUDA all but 'highest' allow TF32. Another
    word is warned about and changes nothing, as in PyTorch.

    Raises:
        RuntimeError: if precision is not a text.
    """
    if not isinstance(precision, str):
        raise RuntimeError(
            "set_float32_matmul_precision expects a str, but got " + type(precision).__name__
        )
    if precision not in ("highest", "high", "medium"):
        warnings.warn(
            f"{precision} is not one of 'highest', 'high', or 'medium'; the current "
            "set_float32_matmul_precision call has no effect.",
            stacklevel=2,
        )
        return
    _settings["precision"] = precision
    _C._cuda_allow_tf32(precision != "highest")


def get_float32_matmul_precision() -> str:
    """Returns the precision set by set_float32_matmul_precision."""
    return _settings["precision"]


# Warnings and errors


def set_warn_always(b: bool, /) -> None:
    """Notes whether warnings are wanted each time; Python's own filters decide about that."""
    _settings["warn_always"] = bool(b)


def set_vital(vital: str, attr: str, value: str) -> bool:
    """Returns False: nothing is noted of what a program used."""
    return False


def is_warn_always_enabled() -> bool:
    """Returns what set_warn_always was told."""
    return _settings["warn_always"]


def set_anomaly_enabled(mode: bool, check_nan: bool = True) -> None:
    """Sets whether backward looks for NaN in gradients; see autograd.set_detect_anomaly."""
    _C._set_anomaly_mode(bool(mode), bool(check_nan))


def is_anomaly_enabled() -> bool:
    """Returns whether anomaly detection is on."""
    return _C._anomaly_mode()[0]


def is_anomaly_check_nan_enabled() -> bool:
    """Returns whether anomaly detection looks for NaN."""
    return _C._anomaly_mode()[1]


# Threads


def set_num_interop_threads(num: int) -> None:
    """Notes how many ops may run at the same time: ops run one after the other.

    Raises:
        RuntimeError: if the number is not positive, or was set before.
    """
    if num <= 0:
        raise RuntimeError("set_num_interop_threads expects a positive integer")
    if _settings["interop_threads"] is not None:
        raise RuntimeError(
            "Error: cannot set number of interop threads after parallel work has started or "
            "set_num_interop_threads called"
        )
    _settings["interop_threads"] = int(num)


def get_num_interop_threads() -> int:
    """Returns what set_num_interop_threads was told, at first the number of threads of an op."""
    return _settings["interop_threads"] or _C.get_num_threads()


# The build and the devices


def compiled_with_cxx11_abi() -> bool:
    """Returns True: the core is built with the C++11 ABI."""
    return True


def is_vulkan_available() -> bool:
    """Returns False."""
    return False


# What old programs ask the root for: LAPACK, OpenMP and Fourier transforms are always there.
has_lapack = has_openmp = has_spectral = True
has_mkl = has_mps = False


def __getattr__(name: str) -> bool:
    """Whether there is what has_cuda, has_cudnn and has_mkldnn ask for, found when it is asked."""
    from rushlight import backends

    if name == "has_cuda":
        return backends.cuda.is_built()
    if name == "has_cudnn":
        return backends.cudnn.is_available()
    if name == "has_mkldnn":
        return backends.mkldnn.is_available()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def set_default_device(device: Any) -> None:
    """Sets the device of tensors that are made without one, in this thread.

    `with torch.device("cuda"):` does the same for a block. What follows an input, as zeros_like
    does, is made where the input is.

    Args:
        device: a device or its name; None is the CPU.

    Example:
        >>> torch.set_default_device("meta")
        >>> torch.ones(2).device
        device(type='meta')
        >>> torch.set_default_device(None)
        >>> torch.ones(2).device
        device(type='cpu')
    """
    _C._set_default_device("cpu" if device is None else device)


def get_default_device() -> device:
    """Returns the device of tensors that are made without one.

    Example:
        >>> with torch.device("meta"):
        ...     torch.get_default_device()
        device(type='meta')
    """
    place = _C._default_device()
    return place if place.index is not None else _C.tensor([]).device


def get_device_module(device: Any = None) -> ModuleType:
    """Returns the module of a kind of devices, torch.cuda for one.

    Args:
        device: a device or its name; the kind that is there unless given.

    Raises:
        RuntimeError: if there is no such module.

    Example:
        >>> torch.get_device_module("cuda").__name__
        'rushlight.cuda'
    """
    import rushlight as rl

    if device is None:
        kind = "cuda" if _C._cuda_is_available() else "cpu"
    else:
        kind = _C.device(device).type
    module = getattr(rl, kind, None)
    if module is None:
        raise RuntimeError(
            f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'."
        )
    return module
