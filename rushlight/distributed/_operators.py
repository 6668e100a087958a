"""Names of PyTorch's operators of collectives, which libraries list in tables.

Collectives are functions here, and call no operator: a call of one of these is refused.
"""

from __future__ import annotations

from rushlight.library import define

_SCHEMAS = (
    "_c10d_functional::_wrap_tensor_autograd(Tensor input) -> Tensor",
    "_c10d_functional::all_gather_into_tensor(Tensor input, int group_size, str group_name) "
    "-> Tensor",
    "_c10d_functional::wait_tensor(Tensor tensor) -> Tensor",
    "c10d::scatter_(Tensor[] output_tensors, Any input_tensors, Any process_group, int root_rank, "
    "bool asyncOp, int timeout) -> Any",
    "c10d_functional::all_reduce(Tensor self, str reduceOp, str tag, int[] ranks, int group_size) "
    "-> Tensor",
    "c10d_functional::all_to_all_single(Tensor input, SymInt[]? output_split_sizes, "
    "SymInt[]? input_split_sizes, str tag, int[] ranks, int group_size) -> Tensor",
    "c10d_functional::reduce_scatter_tensor(Tensor input, str reduceOp, str tag, int[] ranks, "
    "int group_size) -> Tensor",
    "c10d_functional::all_gather_into_tensor(Tensor shard, str tag, int[] ranks, int group_size) "
    "-> Tensor",
    "c10d_functional::wait_tensor(Tensor self) -> Tensor",
)

for schema in _SCHEMAS:
    name, bracket, rest = schema.partition("(")
    define(name, bracket + rest)
