"""Questions about the processor."""

from rushlight import _C

_NAMES = {"baseline": "DEFAULT", "v3": "AVX2", "v4": "AVX512"}


def get_cpu_capability() -> str:
    """Returns the instruction set that kernels run with: "DEFAULT", "AVX2" or "AVX512".

    Example:
        >>> torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")
        True
    """
    return _NAMES[_C._cpu_isa()]
