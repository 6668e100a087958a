"""Names of dtypes that no tensor has here: libraries list them in tables of what they could do."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:

    def __getattr__(name: str) -> DTypeName: ...


_BITS = {
    **{f"{kind}{bits}": bits for kind in ("int", "uint") for bits in range(1, 8)},
    "complex32": 32,
    "float4_e2m1fn_x2": 8,
    "float8_e4m3fnuz": 8,
    "float8_e5m2fnuz": 8,
    "float8_e8m0fnu": 8,
}


class DTypeName:
    """A dtype to compare with and to print, torch.uint4 for one; it is no instance of dtype."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.is_complex = name.startswith("complex")
        self.is_floating_point = name.startswith("float")
        self.is_signed = not name.startswith("uint")
        self.itemsize = -(-_BITS[name] // 8)

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self) -> str:
        return self.name


_names = {name: DTypeName(name) for name in _BITS}
globals().update(_names)
chalf = _names["complex32"]
