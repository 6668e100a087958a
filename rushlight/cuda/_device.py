"""The GPUs of this machine, their properties, and the current one of each thread."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from rushlight import _C
from rushlight._settings import read_debug_mode


def gpu_index(device: Any) -> int:
    """Returns the number of a GPU: of a device, its name or number, or the current one for None."""
    if device is None:
        _C._cuda_require()
        return _C._cuda_current_device()
    if not isinstance(device, _C.device):
        device = _C.device("cuda", device) if isinstance(device, int) else _C.device(device)
    if device.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {device}")
    _C._cuda_require()
    return _C._cuda_current_device() if device.index is None else device.index


def device_count() -> int:
    """Returns the number of GPUs that can be used; 0 when CUDA cannot be.

    Example:
        >>> torch.cuda.device_count() > 0 or not torch.cuda.is_available()
        True
    """
    return _C._cuda_device_count()


def current_device() -> int:
    """Returns the number of the GPU that "cuda" means in this thread.

    Raises:
        RuntimeError: when CUDA cannot be used.
    """
    return gpu_index(None)


def set_device(device: Any) -> None:
    """Makes a GPU the current one of this thread.

    Args:
        device: a device, its name or its number; negative numbers change nothing.

    Raises:
        RuntimeError: when there is no such GPU.
    """
    if isinstance(device, int) and device < 0:
        return
    _C._cuda_set_device(gpu_index(device))


class device:
    """A context in which a GPU is the current one.

    Args:
        device: a device, its name or its number; None and negative numbers change nothing.
    """

    def __init__(self, device: Any) -> None:
        keeps = device is None or (isinstance(device, int) and device < 0)
        self.idx = -1 if keeps else gpu_index(device)
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx >= 0:
            self.prev_idx = _C._cuda_current_device()
            _C._cuda_set_device(self.idx)

    def __exit__(self, *exc_info: object) -> None:
        if self.idx >= 0:
            _C._cuda_set_device(self.prev_idx)


class device_of(device):
    """A context in which the GPU of a tensor is the current one.

    Args:
        obj: a tensor; one of another device changes nothing.
    """

    def __init__(self, obj: Any) -> None:
        super().__init__(obj.device.index if obj.is_cuda else None)


def get_device_properties(device: Any = None) -> SimpleNamespace:
    """Returns what the driver says about a GPU: name, total_memory, multi_processor_count, ...

    Args:
        device: which one; the current one without it.

    Raises:
        RuntimeError: when there is no such GPU.
    """
    from types import SimpleNamespace

    values = _C._cuda_properties(gpu_index(device))
    digits = values["uuid"].hex()
    values["uuid"] = "-".join(
        digits[begin:end] for begin, end in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))
    )
    return SimpleNamespace(**values)


def get_device_name(device: Any = None) -> str:
    """Returns the name of a GPU.

    Args:
        device: which one; the current one without it.
    """
    return get_device_properties(device).name


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """Returns the compute capability of a GPU, (9, 0) for example.

    Args:
        device: which one; the current one without it.
    """
    properties = get_device_properties(device)
    return properties.major, properties.minor


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Returns whether there is a GPU that computes in bfloat16.

    Args:
        including_emulation: whether older GPUs count, whose kernels convert to float32.

    Example:
        >>> dtype = torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    """
    return device_count() > 0 and (including_emulation or is_tf32_supported())


def is_tf32_supported() -> bool:
    """Returns whether the current GPU multiplies float32 matrices in TF32 when allowed to."""
    return device_count() > 0 and get_device_capability() >= (8, 0)


_ARCHS = ("sm_80", "sm_90", "sm_100")  # what precompile and the tests compile for


def get_arch_list() -> list[str]:
    """Returns the architectures that kernels are known to compile for; [] without a GPU.

    Kernels are compiled when they are needed, for the GPU that is there.
    """
    return list(_ARCHS) if device_count() > 0 else []


def get_gencode_flags() -> str:
    """Returns the flags of NVIDIA's compiler for those architectures."""
    numbers = [name.removeprefix("sm_") for name in get_arch_list()]
    return " ".join(f"-gencode compute=compute_{n},code=sm_{n}" for n in numbers)


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Returns whether kernels of a GPU could read the memory of another one by themselves.

    Args:
        device: a device, its name or its number.
        peer_device: the other one.

    Raises:
        RuntimeError: when there is no such GPU.
    """
    return _C._cuda_can_access_peer(gpu_index(device), gpu_index(peer_device))


def set_sync_debug_mode(debug_mode: int | str) -> None:
    """Says what happens when an op waits for the GPU: such as item(), cpu() and nonzero().

    Args:
        debug_mode: "default" or 0 for nothing, "warn" or 1, "error" or 2.

    Raises:
        RuntimeError: for another mode.
        TypeError: if it is neither a word nor an int.

    Example:
        >>> torch.cuda.set_sync_debug_mode("default")
        >>> torch.cuda.get_sync_debug_mode()
        0
    """
    _C._cuda_set_sync_debug_mode(read_debug_mode(debug_mode))


def get_sync_debug_mode() -> int:
    """Returns what set_sync_debug_mode was told: 0, 1 or 2."""
    return _C._cuda_get_sync_debug_mode()


def ipc_collect() -> None:
    """Does nothing: memory of a GPU is not shared with other processes."""
