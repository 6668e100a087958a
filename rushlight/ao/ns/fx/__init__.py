"""The part of torch.ao.ns for results of networks."""

from rushlight import _later

__getattr__ = _later.imports(__name__, ("utils",))
