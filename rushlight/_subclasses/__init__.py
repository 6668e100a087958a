"""What libraries ask of tensors that stand in for others while a program is traced."""

from rushlight._subclasses.fake_tensor import FakeTensor, FakeTensorMode

__all__ = ["FakeTensor", "FakeTensorMode"]
