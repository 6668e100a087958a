"""The calls of PyTorch's own op database give the same in both libraries.

The database has sample calls of some 600 functions for each dtype that they support, and calls
that must fail. Results, strides, gradients, tangents and the classes of exceptions are compared, of
the function, its method, its in-place form and with out=. What differs on purpose is in
differences.py, and orders of memory in memory_orders.py.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from compat.databases import (
    Conversion,
    ConversionError,
    found_at,
    our_function,
    outcomes,
    pytorch,
    without_needless_zeros,
)
from compat.differences import is_accepted_in_database, is_skipped
from compat.libraries import is_same, texts_of
from compat.memory_orders import RESULTS
from compat.memory_orders import is_accepted as may_lie_otherwise

import rushlight as torch

database = pytest.importorskip("torch.testing._internal.common_methods_invocations")
pytestmark = pytest.mark.filterwarnings("ignore")

DTYPES = ["float64", "complex128", "float32", "int64", "uint8", "bool", "complex64"]
DTYPES += ["bfloat16", "float16"]
EXACT = ("float64", "complex128")  # whose gradients are compared
TOLERANCE = 1e-7  # of these

# The samples of a dtype that are run, by number, and those that are run in the other forms too.
CHOSEN = (*range(12), *range(12, 120, 9))
CHOSEN_OF_INEXACT = CHOSEN[:12]
CHOSEN_IN_OTHER_FORMS = CHOSEN[:6]

# Random numbers and memory that nothing wrote: values are not compared.
UNSPECIFIED = re.compile(
    r"^(bernoulli|cauchy|exponential|geometric|log_normal|multinomial|normal|uniform)$|dropout|empty"
    r"|^rand|resize_|_lowrank|rrelu|fractional_max_pool|multi_head_attention"
)
# What PyTorch's back ends and compilers are made of, or Python 2 was; torch.masked; samples with
# sparse tensors, with complex32, or with views that are not all of their memory.
LEFT_OUT = re.compile(
    r"_(?!_)|__rdiv__|torch\.|jiterator|slice$|\w+_backward|max_pool2d_with|masked\.|sparse|to_sparse|chalf"
    r"|as_strided\.partial|nn\.functional\.linear_cross_entropy"
)


def full_name(op: Any) -> str:
    return f"{op.name}.{op.variant_test_name}" if op.variant_test_name else op.name


OPS = {full_name(op): op for op in database.op_db if not LEFT_OUT.match(full_name(op))}


# Forms of a function


def function_of(op: Any) -> Any:
    """Our function for one of the database."""
    public = found_at(pytorch, op.name) is op.op
    return found_at(torch, op.name) if public else our_function(op.op)


def in_place(method: Any) -> Any:
    return lambda first, *rest, **options: method(first.clone(), *rest, **options)


OUTS: dict[str, Callable[[Any, Any], Any]] = {
    "an empty out": lambda library, like: like.new_empty(0),
    "an out of one more": lambda library, like: like.new_zeros([size + 1 for size in like.shape]),
    "an out of other strides": lambda library, like: like.new_zeros(
        [*reversed(like.shape)]
    ).permute(*reversed(range(like.ndim))),
    "an integer out": lambda library, like: like.new_zeros(like.shape, dtype=library.int64),
}


def with_out(library: Any, function: Any, make: Any) -> Any:
    """A function that gives the out= it was called with, which is made after its result."""

    def call(*args: Any, **options: Any) -> Any:
        with library.no_grad():
            result = function(*args, **options)
            many = isinstance(result, tuple)
            out = tuple(make(library, t) for t in result) if many else make(library, result)
            function(*args, **options, out=out)
        return out

    return call


def other_forms(op: Any) -> Iterator[tuple[str, Any, Any]]:
    """The method, the in-place method and the function with out=, ours and PyTorch's."""
    for what, method, form in [
        (" method", op.method_variant, lambda method: method),
        (" in place", op.inplace_variant, in_place),
    ]:
        name = getattr(method, "__name__", "")
        if method is not None and getattr(pytorch.Tensor, name, None) == method:
            yield what, form(getattr(torch.Tensor, name)), form(method)
    if op.supports_out and found_at(pytorch, op.name) is op.op:
        for what, make in OUTS.items():
            yield (
                f" {what}",
                *(
                    with_out(library, found_at(library, op.name), make)
                    for library in (torch, pytorch)
                ),
            )


def unique(op: Any, sample: Any, function: Any, convert: Any) -> Any:
    """A function of unique results: the database knows what of a decomposition is, and what to do
    with matrices first so that they have one gradient."""
    prepare, process = convert(op.gradcheck_wrapper), convert(sample.output_process_fn_grad)
    return lambda *args, **options: process(prepare(function, *args, **options))


# What comes of a call


def without_values(value: Any) -> Any:
    """A described result as its shapes and dtypes."""
    if isinstance(value, list):
        return [without_values(item) for item in value]
    return (*value[:2], None) if isinstance(value, tuple) else value


def differences(
    op: Any, case: str, functions: tuple[Any, Any], sample: Any, sought: set[str]
) -> Iterator[str]:
    """Lines about what comes of one call otherwise than in PyTorch."""
    if is_skipped(case):
        return
    convert = Conversion()
    args, options = (sample.input, *sample.args), sample.kwargs
    try:
        our_args, our_options = convert(args), convert(options)
        our_call = unique(op, sample, functions[0], convert)
    except ConversionError:
        return
    ours = outcomes(torch, our_call, our_args, our_options, sought)
    their_call = unique(op, sample, functions[1], lambda function: function)
    theirs = outcomes(pytorch, their_call, args, options, sought)
    for what, expected in theirs.items():
        if what and (what not in ours or isinstance(expected, Exception)):
            continue  # it is said already that ours has none, or PyTorch has no derivative
        mine = ours[what]
        if UNSPECIFIED.search(op.name) or options.get("dropout_p"):
            mine, expected = without_values(mine), without_values(expected)
        elif what == "gradient":
            mine = without_needless_zeros(mine, expected)
        if is_same(mine, expected, TOLERANCE):
            continue
        texts = texts_of(mine, expected, TOLERANCE)
        place = f"{case} {what}]".replace(" ]", "]")
        if not is_accepted_in_database(place, *texts):
            summary = f"{place} {sample.summary()}"[:400]
            yield f"{summary}\n  ours:      {texts[0]}\n  PyTorch's: {texts[1][:300]}"


# The samples


def samples_of(op: Any, dtype: str) -> Iterator[tuple[int, Any, bool]]:
    """Sample calls of a dtype, with their numbers and whether they have gradients."""
    theirs, exact = getattr(pytorch, dtype), dtype in EXACT
    if theirs not in op.supported_dtypes("cpu"):
        return
    records = exact and op.supports_autograd and theirs in op.supported_backward_dtypes("cpu")
    for seed in (pytorch.manual_seed, random.seed, np.random.seed):
        seed(0)
    chosen = CHOSEN if exact else CHOSEN_OF_INEXACT
    for k, sample in enumerate(op.sample_inputs("cpu", theirs, requires_grad=records)):
        if k > chosen[-1]:
            return
        if k in chosen:
            yield k, sample, records


def lines_about(name: str) -> Iterator[str]:
    """Lines about all that differs in the calls of an op."""
    op = OPS[name]
    functions = function_of(op), op.op
    strides = set() if may_lie_otherwise(op.name, RESULTS) else {"strides"}
    derivatives = {"gradient", "tangent"} if op.supports_forward_ad else {"gradient"}
    for dtype in DTYPES:
        for k, sample, records in samples_of(op, dtype):
            sought = strides | derivatives if records else strides
            case = f"{name} [{dtype} {k}"
            yield from differences(op, case, functions, sample, sought)
            if dtype != "float64" or k not in CHOSEN_IN_OTHER_FORMS:
                continue
            for form, *both in other_forms(op):
                if form == " in place" and sample.broadcasts_input:
                    continue
                seen = strides if "out" in form else sought
                yield from differences(op, case + form, (both[0], both[1]), sample, seen)
    for k, wrong in enumerate(op.error_inputs("cpu") if op.error_inputs_func else ()):
        yield from differences(op, f"{name} [error {k}", functions, wrong.sample_input, set())


@pytest.fixture(autouse=True, scope="module")
def one_thread_and_one_generator() -> Iterator[None]:
    """Tensors are small here, and threads that wait for each other are slow on a busy machine. So
    is what PyTorch notes with each sample, to seed generators of devices that are not there."""
    before = [library.get_num_threads() for library in (torch, pytorch)]
    for library in (torch, pytorch):
        library.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pytorch, "manual_seed", pytorch.default_generator.manual_seed)
        yield
    for library, count in zip((torch, pytorch), before, strict=True):
        library.set_num_threads(count)


@pytest.mark.parametrize("name", OPS)
def test_samples_of_the_database(name: str) -> None:
    found = list(lines_about(name))
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:12])
