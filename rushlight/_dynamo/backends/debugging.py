"""The back ends that run a graph as it is, and what explain returns, where PyTorch has them."""

from rushlight._dynamo._explaining import ExplainOutput
from rushlight._dynamo.backends.registry import BackEnd, register_backend
from rushlight._dynamo.backends.registry import run_as_it_is as aot_eager
from rushlight._dynamo.backends.registry import run_as_it_is as eager

__all__ = ["ExplainOutput", "aot_eager", "eager", "get_nop_func", "register_backend"]


def get_nop_func() -> BackEnd:
    """The compiler that leaves a graph as it is."""
    return eager
