"""torch.ao.ns: what quantization changes in numbers."""

from rushlight import _later

__getattr__ = _later.imports(__name__, ("_numeric_suite", "_numeric_suite_fx", "fx"))
