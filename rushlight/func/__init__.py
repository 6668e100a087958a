"""Transforms of functions: derivatives, vmap, and modules called as functions."""

from rushlight._functorch.vmap import vmap
from rushlight.func.derivatives import grad, grad_and_value, jvp, linearize, vjp
from rushlight.func.jacobians import hessian, jacfwd, jacrev
from rushlight.func.modules import (
    functional_call,
    replace_all_batch_norm_modules_,
    stack_module_state,
)
from rushlight.func.rearrangement import rearrange
from rushlight.func.unwrapping import debug_unwrap, functionalize

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
    "stack_module_state",
    "vjp",
    "vmap",
]
