"""Control flow as functions, which programs write so that PyTorch can compile them.

Here they are Python's own: a branch or a loop runs as it is called. A graph that is traced has what
ran; only a recording (export, jit.trace, onnx) has both branches, and takes one of the results.
"""

from rushlight._higher_order_ops.associative_scan import associative_scan
from rushlight._higher_order_ops.cond import cond
from rushlight._higher_order_ops.foreach_map import foreach_map
from rushlight._higher_order_ops.map import map
from rushlight._higher_order_ops.scan import scan
from rushlight._higher_order_ops.while_loop import while_loop

__all__ = ["associative_scan", "cond", "foreach_map", "map", "scan", "while_loop"]
