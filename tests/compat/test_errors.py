"""Mistakes raise in both libraries, with one class, or what they give is the same.

The samples of every op are called wrongly in the ways of ops/mutations.py, also in place and with
out=. Accepted differences are in compat/differences.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from compat.differences import is_accepted, is_skipped
from compat.libraries import described, function_of, is_same, texts_of
from ops.matrix import ROWS, SAMPLED, SAMPLES
from ops.mutations import OnMeta, mutations, tensor_of
from samples import Sample

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")


def outcome(library, function, sample):
    """What a call gives, or the exception that it raises."""
    filled = sample.map(lambda array: tensor_of(library, array))
    try:
        return described(function(*filled.args, **filled.kwargs))
    except Exception as error:
        return error


def is_on_two_devices(sample):
    """Whether a call mixes meta with the CPU, where PyTorch reads memory that is not there."""
    return len({isinstance(array, OnMeta) for array in sample.arrays()}) == 2


def differences(name, form, calls, tolerance=1e-6):
    """Lines about the calls, (what, sample), that end otherwise than in PyTorch."""
    for what, sample in calls:
        case = f"{name} [{what}]"
        if is_skipped(case) or is_on_two_devices(sample):
            continue
        ours, theirs = outcome(torch, form(torch), sample), outcome(pytorch, form(pytorch), sample)
        if is_same(ours, theirs, tolerance):
            continue
        texts = texts_of(ours, theirs, tolerance)
        if not is_accepted(case, *texts):
            yield f"{case} {shape_text(sample)}\n  ours:      {texts[0]}\n  PyTorch's: {texts[1]}"


def shape_text(sample):
    """A call with each array as its dtype and shape."""

    class Short(str):
        __slots__ = ()
        __repr__ = str.__str__

    short = sample.map(lambda array: Short(f"{array.dtype}{list(array.shape)}"))
    return f"{short.args} {short.kwargs}"


def check(lines):
    found = list(lines)
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:10])


COMPARED = [name for name in SAMPLED if function_of(pytorch, ROWS[name]) is not None]


@pytest.mark.parametrize("name", COMPARED)
def test_wrong_arguments(name) -> None:
    op = SAMPLES[name]
    calls = [
        (f"{k} {what}", wrong)
        for k, sample in enumerate(op.all)
        for what, wrong in [("itself", sample), *mutations(sample)]
    ]
    check(differences(name, lambda library: function_of(library, ROWS[name]), calls))


def in_place(name):
    """The in-place method of an op in a library."""
    return lambda library: getattr(library.Tensor, ROWS[name]["name"] + "_")


def targets(sample):
    """The first argument of a call as something that cannot take the result, or hardly."""
    first, *rest = sample.args
    yield "an integer target", Sample(np.ones(first.shape, np.int64), *rest, **sample.kwargs)
    yield "a bool target", Sample(np.ones(first.shape, bool), *rest, **sample.kwargs)
    yield "a float32 target", Sample(first.astype(np.float32), *rest, **sample.kwargs)
    if first.ndim:
        yield "a smaller target", Sample(first[:1], *rest, **sample.kwargs)
        yield (
            "a target of one dim less",
            Sample(np.asarray(first[:1].sum(0)), *rest, **sample.kwargs),
        )


IN_PLACE = [
    name
    for name in COMPARED
    if ROWS[name]["inplace"] and hasattr(pytorch.Tensor, ROWS[name]["name"] + "_")
]


@pytest.mark.parametrize("name", IN_PLACE)
def test_wrong_arguments_in_place(name) -> None:
    calls = []
    for k, sample in enumerate(SAMPLES[name].all[:3]):
        wrong = [*mutations(sample)]
        if isinstance(sample.args[0], np.ndarray) and sample.args[0].dtype == np.float64:
            wrong += targets(sample)
        calls += [(f"{k} {what}", call) for what, call in wrong]
    check(differences(name + "_", in_place(name), calls))


@pytest.mark.parametrize("name", IN_PLACE)
def test_targets_that_cannot_be_written(name) -> None:
    sample = SAMPLES[name].all[0]
    if not isinstance(sample.args[0], np.ndarray) or not sample.args[0].ndim:
        pytest.skip("needs a tensor with dims first")

    def into(prepare):
        def form(library):
            def call(first, *rest, **options):
                return in_place(name)(library)(prepare(library, first), *rest, **options)

            return call

        return form

    ways = {
        "an expanded target": lambda library, t: t[:1].expand(3, *t.shape[1:]),
        "a leaf": lambda library, t: t.requires_grad_(),
        "a view of a leaf": lambda library, t: t.requires_grad_().view_as(t),
    }
    for what, prepare in ways.items():
        check(differences(name + "_", into(prepare), [(what, sample)]))


OUTS = {
    "an integer out": lambda library, like: library.zeros_like(like, dtype=library.int64),
    "a bool out": lambda library, like: library.zeros_like(like, dtype=library.bool),
    "a float32 out": lambda library, like: library.zeros_like(like, dtype=library.float32),
    "a complex out": lambda library, like: library.zeros_like(like, dtype=library.complex128),
    "an out of another shape": lambda library, like: library.zeros(2, 7, dtype=like.dtype),
    "an empty out": lambda library, like: library.empty(0, dtype=like.dtype),
    "an expanded out": lambda library, like: library.zeros(1, dtype=like.dtype).expand_as(like),
    "an out that requires grad": lambda library, like: (
        library.zeros_like(like).requires_grad_() if like.is_floating_point() else like
    ),
    "a number as out": lambda library, like: 3,
    "a tuple as out": lambda library, like: (like,),
    "an out on meta": lambda library, like: library.zeros_like(like, device="meta"),
}


def with_out(name, make):
    """The function of an op, given an out= that is made after the result."""

    def form(library):
        function = function_of(library, ROWS[name])

        def call(*args, **options):
            out = make(library, function(*args, **options))
            function(*args, **options, out=out)
            return out

        return call

    return form


@pytest.mark.parametrize(
    "name", [n for n in COMPARED if [r for r, _ in ROWS[n]["returns"]] == ["Tensor"]]
)
def test_wrong_out(name) -> None:
    sample = SAMPLES[name].all[0]
    if not ROWS[name]["function"] or ROWS[name]["home"].startswith("nn"):
        pytest.skip("has no out=")
    for what, make in OUTS.items():
        check(differences(name, with_out(name, make), [(what, sample)]))


@pytest.mark.parametrize("dtype", ["int64", "bool", "uint8"])
def test_numbers_without_gradients_cannot_require_them(dtype) -> None:
    def raised(library):
        found = []
        calls = [
            lambda: library.ones(2, dtype=getattr(library, dtype)).requires_grad_(),
            lambda: library.ones(2, dtype=getattr(library, dtype), requires_grad=True),
            lambda: library.tensor([1], dtype=getattr(library, dtype), requires_grad=True),
            lambda: library.nn.Parameter(library.ones(2, dtype=getattr(library, dtype))),
            lambda: setattr(library.ones(2, dtype=getattr(library, dtype)), "requires_grad", True),
        ]
        for call in calls:
            with pytest.raises(Exception) as error:  # noqa: PT011
                call()
            found.append(error.type.__name__)
        return found

    assert raised(torch) == raised(pytorch)


X = "torch.arange(24.0).reshape(2, 3, 4)"
FAR = "torch.tensor([1, 7])"


@pytest.mark.parametrize(
    "call",
    [
        *(
            f"{x}.{text}"
            for x in (X, f"{X}[0, 0]")
            for text in (
                f"index_select(0, {FAR})",
                f"index_copy(0, {FAR}, {x}[:2])",
                f"index_fill(-1, {FAR}, 1.0)",
                f"index_reduce(0, {FAR}, {x}[:2], 'prod')",
                f"__getitem__({FAR})",
                f"take(10 * {FAR})",
                f"put(10 * {FAR}, torch.ones(2))",
                "select(7, 0)",
            )
        ),
        "torch.nn.functional.embedding(torch.tensor([1]), torch.ones(3, 4), padding_idx=3)",
        "torch.nn.functional.embedding(torch.tensor([1]), torch.ones(3, 4), padding_idx=-4)",
        f"torch.nn.functional.embedding({FAR}, torch.ones(3, 4))",
        *(f"torch.tensordot({X}, {X}, ([{dim}], [0]))" for dim in (3, -4)),
        "torch.tensordot(torch.tensor(1.0), torch.tensor(1.0), ([0], [0]))",
        *(f"torch.tensor({data})" for data in ("[1, [2]]", "[1, 'a']", "['a']", "'a'", "[[1], 2]")),
        *(f"torch.device('cpu', {index})" for index in (-1, "'a'", 1.5)),
        "torch.nn.utils.vector_to_parameters(torch.ones(2), [torch.nn.Parameter(torch.ones(3))])",
        "torch.nn.init.trunc_normal_(torch.ones(3), a=3.0, b=2.0)",
    ],
)
def test_the_class_of_an_error(call) -> None:
    def raised(library):
        with pytest.raises(Exception) as error:  # noqa: PT011
            eval(call, {"torch": library})
        return error.type.__name__

    assert raised(torch) == raised(pytorch)
