"""Switches of what runs on NVIDIA's GPUs.

matmul.allow_tf32 and matmul.fp32_precision decide about products of float32; the other switches
keep what they are set to and change nothing.
"""

from __future__ import annotations

import contextlib
import warnings

import rushlight as rl
from rushlight import _later, _settings
from rushlight.backends._switches import check_precision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from rushlight import Tensor

__getattr__ = _later.imports(__name__, names_in={"attention": "SDPBackend"}, package="rushlight.nn")

_ATTENTION = {"flash": True, "math": True, "mem_efficient": True, "cudnn": True}
_LINALG = ("default", "cusolver", "magma")
_BLAS = ("default", "cublas", "cublaslt", "hipblaslt", "ck")
_state: dict[str, Any] = {
    "linalg": "default",
    "blas": "cublas",
    "reduced_math": False,
}


def is_built() -> bool:
    """Whether CUDA can be used: the same as cuda.is_available().

    The one build finds the driver and its libraries when it runs; where they are missing, programs
    see what they would see of a build without CUDA.
    """
    return rl.cuda.is_available()


# Products


class _Matmul:
    """How products of matrices are computed."""

    _SETTINGS = (
        "allow_fp16_reduced_precision_reduction",
        "allow_bf16_reduced_precision_reduction",
        "allow_fp16_accumulation",
    )

    def __init__(self) -> None:
        self.__dict__.update(dict.fromkeys(self._SETTINGS, True), allow_fp16_accumulation=False)

    @property
    def allow_tf32(self) -> bool:
        """Whether products of float32 may round their factors to TF32."""
        return _settings.get_float32_matmul_precision() != "highest"

    @property
    def fp32_precision(self) -> str:
        """'tf32' or 'ieee': the same setting."""
        return "tf32" if self.allow_tf32 else "ieee"

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "allow_tf32":
            _check_bool(value, "set_allow_tf32_cublas")
            _settings.set_float32_matmul_precision("high" if value else "highest")
        elif name == "fp32_precision":
            check_precision(value)
            _settings.set_float32_matmul_precision("high" if value == "tf32" else "highest")
        elif name not in self._SETTINGS:
            raise AttributeError(f"Unknown attribute {name}")
        elif name == "allow_fp16_accumulation":
            _check_bool(value, "set_allow_fp16_accumulation_cublas")
            self.__dict__[name] = value
        else:
            self.__dict__[name] = _reduction(name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Unknown attribute {name}")


def _reduction(name: str, value: Any) -> bool:
    """The first of one or two bools, of which the second is about split products."""
    values = value if isinstance(value, (list, tuple)) else (value,)
    if not 1 <= len(values) <= 2 or not all(isinstance(part, bool) for part in values):
        raise TypeError(f"{name} expects a bool or a tuple/list of bools, but got {type(value)!r}")
    return values[0]


def _check_bool(value: Any, setter: str) -> None:
    if not isinstance(value, bool):
        raise RuntimeError(f"{setter} expects a bool, but got {type(value).__name__}")


matmul = _Matmul()


def preferred_linalg_library(backend: str | None = None) -> str:
    """Notes which library is wanted for linear algebra; returns the one noted.

    Raises:
        RuntimeError: if it is not one of "default", "cusolver" and "magma".
    """
    return _preferred("linalg", backend, _LINALG)


def preferred_blas_library(backend: str | None = None) -> str:
    """Notes which library is wanted for products; returns the one noted.

    Raises:
        RuntimeError: if it is not one of "default", "cublas", "cublaslt", "hipblaslt" and "ck".
    """
    return _preferred("blas", backend, _BLAS)


def _preferred(kind: str, backend: str | None, known: tuple[str, ...]) -> str:
    if backend is not None:
        if backend not in known:
            raise RuntimeError(f"Unknown input value. Choose from: {', '.join(known)}.")
        _state[kind] = backend
    return _state[kind]


# Attention


class SDPAParams:
    """The arguments of an attention, for questions about how it could be computed.

    Args:
        query: queries, (N, heads, L, E).
        key: keys, (N, heads, S, E).
        value: values, (N, heads, S, Ev).
        attn_mask: a mask, or None.
        dropout: probability of dropout.
        is_causal: whether positions see no later ones.
        enable_gqa: whether groups of query heads share a key head.
    """

    def __init__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None,
        dropout: float,
        is_causal: bool,
        enable_gqa: bool = False,
    ) -> None:
        self.query = query
        self.key = key
        self.value = value
        self.attn_mask = attn_mask
        self.dropout = dropout
        self.is_causal = is_causal
        self.enable_gqa = enable_gqa


def _enable(kind: str, enabled: bool) -> None:
    _check_bool(enabled, "set_sdp_use_math")
    _ATTENTION[kind] = enabled


def enable_flash_sdp(enabled: bool) -> None:
    """Notes whether attention may be computed by the flash kernel."""
    _enable("flash", enabled)


def flash_sdp_enabled() -> bool:
    """Returns what enable_flash_sdp was told."""
    return _ATTENTION["flash"]


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Notes whether attention may be computed by the memory-efficient kernel."""
    _enable("mem_efficient", enabled)


def mem_efficient_sdp_enabled() -> bool:
    """Returns what enable_mem_efficient_sdp was told."""
    return _ATTENTION["mem_efficient"]


def enable_math_sdp(enabled: bool) -> None:
    """Notes whether attention may be computed by separate ops."""
    _enable("math", enabled)


def math_sdp_enabled() -> bool:
    """Returns what enable_math_sdp was told."""
    return _ATTENTION["math"]


def enable_cudnn_sdp(enabled: bool) -> None:
    """Notes whether attention may be computed by cuDNN."""
    _enable("cudnn", enabled)


def cudnn_sdp_enabled() -> bool:
    """Returns what enable_cudnn_sdp was told."""
    return _ATTENTION["cudnn"]


def allow_fp16_bf16_reduction_math_sdp(enabled: bool) -> None:
    """Notes whether attention by separate ops may add up in half precision."""
    _check_bool(enabled, "set_sdp_use_math")
    _state["reduced_math"] = enabled


def fp16_bf16_reduction_math_sdp_allowed() -> bool:
    """Returns what allow_fp16_bf16_reduction_math_sdp was told."""
    return _state["reduced_math"]


def is_flash_attention_available() -> bool:
    """Returns False: there is one kernel, which is not the one of that name."""
    return False


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Returns False."""
    return False


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Returns False."""
    return False


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Returns False."""
    return False


@contextlib.contextmanager
def _attention(**enabled: bool) -> Iterator[None]:
    before = dict(_ATTENTION)
    try:
        for kind, value in enabled.items():
            _enable(kind, value)
        yield
    finally:
        _ATTENTION.update(before)


def sdp_kernel(
    enable_flash: bool = True,
    enable_math: bool = True,
    enable_mem_efficient: bool = True,
    enable_cudnn: bool = True,
) -> contextlib.AbstractContextManager[None]:
    """Notes for a block how attention may be computed; old, see nn.attention.sdpa_kernel."""
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. In the future, this context manager "
        "will be removed. Please see `torch.nn.attention.sdpa_kernel()` for the new context "
        "manager, with updated signature.",
        FutureWarning,
        stacklevel=2,
    )
    return _attention(
        flash=enable_flash,
        math=enable_math,
        mem_efficient=enable_mem_efficient,
        cudnn=enable_cudnn,
    )


# Fourier transforms


class _PlanCache:
    """The plans of Fourier transforms on one GPU, which are never kept."""

    max_size = 0
    size = 0

    def clear(self) -> None:
        """Does nothing."""


class _PlanCaches:
    """The caches of all GPUs, by number; without a number that of the current one."""

    def __getitem__(self, device: int | str | rl.device) -> _PlanCache:
        index = (
            rl.device("cuda", device).index if isinstance(device, int) else rl.device(device).index
        )
        count = rl.cuda.device_count()
        if index is None or not 0 <= index < count:
            raise RuntimeError(
                f"cufft_plan_cache: expected 0 <= device index < {count}, but got device with "
                f"index {index}"
            )
        return _PlanCache()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python looks for; there may be no GPU to ask
            raise AttributeError(name)
        return getattr(self[rl.cuda.current_device()], name)


cufft_plan_cache = _PlanCaches()
