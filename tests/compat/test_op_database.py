"""The calls of PyTorch's own op database give the same in both libraries.

The database holds sample calls of some 600 functions for each dtype that they support, and calls
that must fail. What differs on purpose is in ACCEPTED, by the name of the op.
"""

from __future__ import annotations

import re
import sys
import types
import unittest
from typing import Any

import numpy as np
import pytest
from compat.libraries import described, difference, same

import rushlight as torch

pytorch = pytest.importorskip("torch")
# The database inherits from a class of this module, which is for PyTorch's developers.
sys.modules.setdefault("expecttest", types.SimpleNamespace(TestCase=unittest.TestCase))  # type: ignore[arg-type]
database = pytest.importorskip("torch.testing._internal.common_methods_invocations")
pytestmark = pytest.mark.filterwarnings("ignore")

BITS = {1: "uint8", 2: "int16", 4: "int32", 8: "int64", 16: "complex128"}
EXACT_GRADIENTS = (pytorch.float64, pytorch.complex128)
MOST_SAMPLES = 12  # of one dtype

# Random numbers and memory that nothing wrote: shapes and dtypes are compared, not values.
UNSPECIFIED = re.compile(
    "bernoulli|cauchy|empty|exponential|fractional|geometric|item|log_normal|multi_head|multinomial"
    "|normal|new_empty|pca_lowrank|rand|resize|rrelu|svd_lowrank|uniform|dropout"
    "|scaled_dot_product"
)
# Functions that only PyTorch's own back ends are made of, or whose sample calls need them.
LEFT_OUT = re.compile(
    r"_|jiterator|masked\.|torch\.|native_dropout_backward|sparse|to_sparse|as_strided\.partial"
    r"|nn\.functional\.(linear_cross_entropy|triplet_margin_with)|max_pool2d_with|slice$|chalf"
)

VALUES, GRADIENT, RAISES, CLASS = "values", "gradient", "raises", "class"
# By op: what may differ, and a pattern of the difference.
ACCEPTED = [
    # ---- which of equal elements is found, the signs of vectors ---------------------------------
    ("topk|mode|kthvalue|sort|argsort", VALUES, r"1: values of int64|^values of int64"),
    ("svd|linalg.svd|linalg.eigh|linalg.eig|qr|linalg.qr", "", ""),
    # ---- gradients: of what is not read, or is zero ---------------------------------------------
    ("cholesky_inverse|cholesky_solve|(linalg.)?cholesky(_ex)?", GRADIENT, ""),
    ("as_strided_scatter", GRADIENT, ""),  # PyTorch's is that of another element
    ("istft|norm|linalg.(norm|vector_norm|householder_product)|ormqr", GRADIENT, "None"),
    ("linalg.(lstsq|matrix_power)", GRADIENT, "requires_grad|shape"),
    ("native_(layer|batch)_norm", GRADIENT, "requires_grad"),
    # ---- rounding: of half types, of uint8, and of a sum that overflows there -------------------
    ("nn.functional.(grid_sample|soft_margin_loss)|grid_sampler_.*|histc|matrix_exp", VALUES, ""),
    ("nn.functional.(interpolate|upsample_bilinear).*", VALUES, "uint8"),
    ("nn.functional.(margin_ranking_loss|triplet_margin_loss|pairwise_distance)", VALUES, ""),
    ("native_(group|layer|batch)_norm", VALUES, "float32, not (b?float16)"),
    ("(special.)?polygamma.*|special.bessel_(j0|y1)", VALUES, ""),
    ("(lin|log)space.*", VALUES, "uint8"),  # of negative numbers
    # ---- errors ---------------------------------------------------------------------------------
    (".*", RAISES, "must be Tensor, not int|got \\(int, Tensor\\)|invalid combination"),
    (
        ".*",
        RAISES,
        "single memory location|dtype float, but got|scalar type ComplexDouble|out, got",
    ),
    ("(view_as_)?complex", RAISES, "not implemented for float16"),  # complex32
    ("nn.functional.batch_norm", RAISES, "at least 2 dims"),
    ("arange|narrow|narrow_copy|ormqr|linalg.*", CLASS, ""),
    ("nn.functional.m.*margin_loss", CLASS, ""),
]


def is_accepted(name: str, kind: str, text: str) -> bool:
    return any(
        re.fullmatch(ops, name) and where in ("", kind) and re.search(what, text)
        for ops, where, what in ACCEPTED
    )


def found_at(root: Any, path: str) -> Any:
    for part in path.split("."):
        root = getattr(root, part, None)
    return root


def function_of(op: Any) -> Any:
    """Our function for one of the database, whose own lambdas are run with our module."""
    if found_at(pytorch, op.name) is op.op:
        return found_at(torch, op.name)
    if isinstance(op.op, types.FunctionType) and op.op.__closure__ is None:
        return types.FunctionType(
            op.op.__code__, {**op.op.__globals__, "torch": torch}, None, op.op.__defaults__
        )
    method = getattr(pytorch.Tensor, op.name, None)
    return getattr(torch.Tensor, op.name, None) if method is op.op else None


class ConversionError(Exception):
    pass


def tensor_of(theirs: Any) -> Any:
    """Our tensor of the same elements, strides and conjugation."""
    if theirs.layout is not pytorch.strided or not hasattr(torch, str(theirs.dtype)[6:]):
        raise ConversionError
    dtype = getattr(torch, str(theirs.dtype)[6:])
    if theirs.is_meta:
        return torch.empty_strided(theirs.shape, theirs.stride(), dtype=dtype, device="meta")
    plain = theirs.detach().resolve_conj().resolve_neg()
    bits = plain.contiguous().view(getattr(pytorch, BITS[plain.element_size()]))
    ours = torch.from_numpy(bits.numpy().copy()).view(dtype)
    if 0 not in plain.stride():
        ours = torch.empty_strided(plain.shape, plain.stride(), dtype=dtype).copy_(ours)
    if theirs.is_conj():
        ours = ours.conj_physical().conj()
    return ours.requires_grad_(theirs.requires_grad)


def converted(value: Any, leaves: list[tuple[Any, Any]]) -> Any:
    """An argument with our objects in the place of PyTorch's; adds leaves, (ours, theirs)."""
    if isinstance(value, pytorch.Tensor):
        for ours, theirs in leaves:
            if theirs is value:
                return ours
        leaves.append((tensor_of(value), value))
        return leaves[-1][0]
    if isinstance(value, (list, tuple)):
        return type(value)([converted(item, leaves) for item in value])
    if isinstance(value, dict):
        return {key: converted(item, leaves) for key, item in value.items()}
    if isinstance(value, pytorch.device):
        return str(value)
    if isinstance(value, (pytorch.dtype, pytorch.memory_format, pytorch.layout)):
        if not hasattr(torch, str(value)[6:]):
            raise ConversionError
        return getattr(torch, str(value)[6:])
    if isinstance(value, pytorch.Generator) or callable(value):
        raise ConversionError
    return value


def outcome(function: Any, args: Any, options: Any) -> tuple[Any, Exception | None]:
    try:
        return function(*args, **options), None
    except Exception as error:
        return None, error


def tensors_in(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors_in(item)]
    return [value] if hasattr(value, "requires_grad") else []


def gradients(library: Any, result: Any, leaves: list[Any]) -> Any:
    """Those of a sum that weights all elements of the results differently."""
    results = [t for t in tensors_in(result) if t.requires_grad]
    weights = [
        library.tensor(np.cos(np.arange(t.numel())).reshape(tuple(t.shape))).to(t.dtype)
        for t in results
    ]
    return library.autograd.grad(results, leaves, weights, allow_unused=True)


def compare(op: Any, ours: Any, sample: Any, has_gradient: bool) -> tuple[str, str] | None:
    """What differs in one call, as (kind, text)."""
    args, options = (sample.input, *sample.args), sample.kwargs
    leaves: list[tuple[Any, Any]] = []
    try:
        our_args, our_options = converted(args, leaves), converted(options, leaves)
    except ConversionError:
        return None
    theirs, their_error = outcome(op.op, args, options)
    result, error = outcome(ours, our_args, our_options)
    if their_error is not None:
        if error is None:
            return RAISES, str(their_error)
        if type(error).__name__ != type(their_error).__name__.lstrip("_"):
            return CLASS, f"{type(error).__name__}: {error}, not {type(their_error).__name__}"
        return None
    if error is not None:
        return RAISES, f"{type(error).__name__}: {error}"
    if not UNSPECIFIED.search(op.name):
        a, b = described(result), described(theirs)
        if not same(a, b, 1e-7):
            return VALUES, difference(a, b, 1e-7)
    pairs = [(o, t) for o, t in leaves if t.requires_grad and t.is_leaf]
    if not has_gradient or not pairs or UNSPECIFIED.search(op.name):
        return None
    recorded = [[t.requires_grad for t in tensors_in(r)] for r in (result, theirs)]
    if recorded[0] != recorded[1]:
        return GRADIENT, f"requires_grad {recorded[0]}, not {recorded[1]}"
    if not any(recorded[0]):
        return None
    expected, failed = outcome(gradients, (pytorch, theirs, [t for _, t in pairs]), {})
    if failed is not None:
        return None
    mine = gradients(torch, result, [o for o, _ in pairs])
    for a, b in zip(mine, expected, strict=True):
        if (a is None) != (b is None):
            return GRADIENT, f"{'None' if a is None else 'given'}, not None"
        if a is not None and not same(described(a), described(b), 1e-7):
            return GRADIENT, difference(described(a), described(b), 1e-7)
    return None


def samples_of(op: Any) -> Any:
    """Sample calls with their dtype and whether gradients are compared, and calls that fail."""
    for dtype in sorted(op.supported_dtypes("cpu"), key=str):
        if not hasattr(torch, str(dtype)[6:]):
            continue
        differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes("cpu")
        has_gradient = differentiable and dtype in EXACT_GRADIENTS
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=has_gradient))
        for sample in samples[:: -(-len(samples) // MOST_SAMPLES)]:
            yield str(dtype)[6:], sample, has_gradient
    if op.error_inputs_func is not None:
        for wrong in op.error_inputs("cpu"):
            yield "error", wrong.sample_input, False


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


OPS = {full_name(op): op for op in database.op_db if not LEFT_OUT.match(full_name(op))}


@pytest.mark.parametrize("name", OPS)
def test_samples_of_the_database(name: str) -> None:
    op = OPS[name]
    ours = function_of(op)
    if ours is None:
        pytest.skip("is no public function")
    pytorch.manual_seed(0)
    found = []
    for dtype, sample, has_gradient in samples_of(op):
        what = compare(op, ours, sample, has_gradient)
        if what is not None and not is_accepted(name, what[0], f"{what[1]} [{dtype}]"):
            found.append(f"{dtype}: {what[0]}: {what[1]}\n    {sample.summary()}"[:500])
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:8])
