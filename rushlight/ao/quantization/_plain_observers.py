"""Observers that choose nothing: what they say is known, or none of their business."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.ao.quantization._observer_base import ObserverBase


class FixedQParamsObserver(ObserverBase):
    """Chooses nothing: scale and zero point are given, as those of sigmoid and tanh are known."""

    scale: Tensor
    zero_point: Tensor

    def __init__(
        self,
        scale: float,
        zero_point: int,
        dtype: Any = None,
        qscheme: Any = None,
        quant_min: int = 0,
        quant_max: int = 255,
        is_dynamic: bool = False,
        **kwargs: Any,
    ) -> None:
        if is_dynamic:
            raise NotImplementedError("FixedQParamsObserver doesn't support dynamic quantization")
        super().__init__(rl.quint8 if dtype is None else dtype, is_dynamic, **kwargs)
        self.quant_min, self.quant_max = quant_min, quant_max
        self.qscheme = rl.per_tensor_affine if qscheme is None else qscheme
        self.register_buffer("scale", rl.tensor([scale], dtype=rl.float32))
        self.register_buffer("zero_point", rl.tensor([zero_point], dtype=rl.int32))

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Sees nothing: it says which dtype is wanted, as for dynamic quantization."""

    def __init__(
        self,
        dtype: Any = rl.float32,
        custom_op_name: str = "",
        compute_dtype: Any = None,
        quant_min: int | None = None,
        quant_max: int | None = None,
        qscheme: Any = None,
        eps: float | None = None,
        is_dynamic: bool = False,
    ) -> None:
        super().__init__(dtype, is_dynamic)
        self.qscheme = rl.per_tensor_affine if qscheme is None else qscheme
        self.quant_min, self.quant_max, self.eps = quant_min, quant_max, eps
        self.custom_op = custom_op_name
        if compute_dtype:
            self.is_dynamic = True

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> Any:
        raise Exception("calculate_qparams should not be called for PlaceholderObserver")

    def extra_repr(self) -> str:
        return f"dtype={self.dtype}, is_dynamic={self.is_dynamic}"


class RecordingObserver(ObserverBase):
    """Keeps copies of all tensors, to look for where a quantized network goes wrong."""

    def __init__(self, dtype: Any = None) -> None:
        super().__init__(rl.quint8 if dtype is None else dtype)
        self.tensor_val: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.tensor_val.append(x.clone())
        return x

    def calculate_qparams(self) -> Any:
        raise Exception("calculate_qparams should not be called for RecordingObserver")

    def get_tensor_value(self) -> list[Tensor]:
        """Returns the tensors."""
        return self.tensor_val


class NoopObserver(ObserverBase):
    """Sees nothing, and says that nothing is to be quantized but, perhaps, halved."""

    def __init__(self, dtype: Any = rl.float16, custom_op_name: str = "") -> None:
        super().__init__(dtype)
        self.custom_op = custom_op_name

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> Any:
        raise Exception("calculate_qparams should not be called for NoopObserver")


class ReuseInputObserver(ObserverBase):
    """Says that an op's result has the scale of its input, as that of reshape has."""

    def __init__(self) -> None:
        super().__init__(rl.quint8)

    def forward(self, x: Tensor) -> Tensor:
        return x

    def calculate_qparams(self) -> Any:
        raise Exception("calculate_qparams should not be called for ReuseInputObserver")
