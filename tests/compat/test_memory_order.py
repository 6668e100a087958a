"""Results and gradients lie in memory as PyTorch's do, for operands in every order of dims.

The samples of the ops and the cases of the modules are called with tensors in channels_last and
in other dense orders. A gradient may also lie as its tensor does, whatever PyTorch's does, and what
a leaf keeps in .grad does. Results in all orders have the values of row-major ones.
"""

from __future__ import annotations

import module_cases
import numpy as np
import pytest
from compat import memory_orders
from compat.libraries import function_of
from compat.memory_orders import LAYOUTS, channels_last, is_accepted, order_of, with_images
from ops.matrix import ROWS, SAMPLED, SAMPLES

import rushlight as torch

pytorch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

# What is asked about layout itself, or crashes in PyTorch where tensors require gradients.
OTHER = (
    r"^(as_strided|view_as_complex|view\.dtype|set_|is_contiguous|lstm|gru|rnn_|embedding_bag"
    "|lu_unpack)"
)
COMPARED = [
    name
    for name in SAMPLED
    if function_of(pytorch, ROWS[name]) is not None and not is_accepted(name, [OTHER])
]


def leaves(result):
    if isinstance(result, (torch.Tensor, pytorch.Tensor)):
        return [result]
    if isinstance(result, (list, tuple)):
        return [leaf for item in result for leaf in leaves(item)]
    return []


def tensor_of(library, array, layout, k):
    dtype = library.float32 if array.dtype == np.float64 else None
    tensor = library.tensor(array, dtype=dtype)
    return LAYOUTS[layout](tensor, k).detach() if layout in LAYOUTS else tensor


def weights_like(library, result):
    """A gradient for a result, in its order."""
    weights = library.empty_like(result.detach())
    weights.copy_(library.tensor(np.cos(np.arange(result.numel())).reshape(tuple(result.shape))))
    return weights


class Call:
    """A call in one layout: its inputs, results, and the gradients of the inputs."""

    def __init__(self, library, name, sample, layout, requires_grad):
        self.inputs = []
        filled = sample.map(lambda array: self.add(library, array, layout, requires_grad))
        function = function_of(library, ROWS[name])
        self.results = leaves(function(*filled.args, **filled.kwargs))
        outs = [r for r in self.results if r.requires_grad and r.numel()]
        self.wanted = [t for t in self.inputs if t.requires_grad and outs]
        given = [weights_like(library, r) for r in outs]
        self.grads = []
        if self.wanted:
            self.grads = library.autograd.grad(
                outs, self.wanted, given, retain_graph=True, allow_unused=True
            )
            library.autograd.backward(outs, given)
        self.kept = [t.grad for t in self.wanted]

    def add(self, library, array, layout, requires_grad):
        tensor = tensor_of(library, array, layout, len(self.inputs))
        if requires_grad and tensor.is_floating_point():
            tensor.requires_grad_()
        self.inputs.append(tensor)
        return tensor


def call(*args):
    """A call with gradients if there are such; None when it raises."""
    for requires_grad in (True, False):
        try:
            return Call(*args, requires_grad)
        except Exception:
            continue
    return None


def lies_well(gradient, expected, wanted):
    """Whether a gradient lies as PyTorch's, as a tensor of its shape, or is one number repeated."""
    orders = [order_of(t) for t in wanted if t.shape == gradient.shape]
    return order_of(gradient) in [order_of(expected), *orders] or 0 in order_of(gradient)


def differences(name, sample, layout):
    """What lies otherwise than it should, and lines about it."""
    ours, theirs = call(torch, name, sample, layout), call(pytorch, name, sample, layout)
    if ours is None or theirs is None or len(ours.results) != len(theirs.results):
        return
    where = f"{layout} {[a.shape for a in sample.arrays()]}"
    for k, (mine, expected) in enumerate(zip(ours.results, theirs.results, strict=True)):
        if mine.shape == tuple(expected.shape) and order_of(mine) != order_of(expected):
            yield "result", f"{where}: result {k} {mine.stride()}, not {expected.stride()}"
    for mine, expected in zip(ours.grads, theirs.grads, strict=False):
        if mine is None or expected is None or not mine.numel():
            continue
        if not lies_well(mine, expected, ours.wanted):
            yield "gradient", f"{where}: gradient {mine.stride()}, not {expected.stride()}"
    for kept, tensor in zip(ours.kept, ours.wanted, strict=True):
        if kept is not None and order_of(kept) != order_of(tensor):
            yield ".grad", f"{where}: .grad {kept.stride()} of a leaf {tensor.stride()}"


def calls_of(name):
    """All calls of an op in all layouts."""
    for sample in SAMPLES[name].all:
        for image in with_images(sample):
            if max((array.ndim for array in image.arrays()), default=0) > 1:
                yield from ((image, layout) for layout in LAYOUTS)


def is_allowed(name, what):
    table = {"result": memory_orders.RESULTS, "gradient": memory_orders.GRADIENTS}.get(what, [])
    return is_accepted(name, table)


@pytest.mark.parametrize("name", COMPARED)
def test_memory_order_of_ops(name) -> None:
    found = [
        line
        for image, layout in calls_of(name)
        for what, line in differences(name, image, layout)
        if not is_allowed(name, what)
    ]
    assert not found, f"{len(found)} differences\n" + "\n".join(found[:10])


UNSTABLE = r"^(linalg\.(eig|svd|qr|lstsq|lu)|svd|qr|geqrf|lu|ormqr|empty|new_empty|resize)"


@pytest.mark.parametrize("name", [n for n in COMPARED if not is_accepted(n, [UNSTABLE])])
def test_values_do_not_depend_on_memory_order(name) -> None:
    for image, layout in calls_of(name):
        ours = call(torch, name, image, layout)
        plain = call(torch, name, image, "row-major")
        if ours is None or plain is None:
            continue
        for a, b in zip([*ours.results, *ours.grads], [*plain.results, *plain.grads], strict=True):
            if a is None:
                continue
            a, b = (t.detach().resolve_conj().resolve_neg().numpy() for t in (a, b))
            finite = np.abs(b[np.isfinite(b)]).max(initial=1.0)
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4 * finite, err_msg=layout)


# Modules

CASES = [
    pytest.param(case, id=case.expression)
    for family in module_cases.FAMILIES
    for case in module_cases.family(family)
    if any(
        isinstance(value, module_cases.Numbers) and len(value.shape) in (4, 5)
        for value in case.inputs
    )
]


def orders_of_call(library, case):
    """The order of the results, and of the gradients that inputs and parameters keep."""

    def lying_last(name, value):
        made = case._tensor(library, library.float32, name, value)
        if not isinstance(made, library.Tensor):
            return made
        kept.append(channels_last(made.detach()).requires_grad_(made.requires_grad))
        return kept[-1]

    kept: list = []
    module = case.make(library, library.float32)
    inputs = [lying_last(str(i), value) for i, value in enumerate(case.inputs)]
    keywords = {name: lying_last(name, value) for name, value in case.keywords.items()}
    if isinstance(module, library.nn.Module):
        volumes = any(param.dim() == 5 for param in module.parameters())
        module.to(memory_format=library.channels_last_3d if volumes else library.channels_last)
        kept += module.parameters()
    results = leaves(module(*inputs, **keywords))
    outs = [r for r in results if r.requires_grad]
    library.autograd.backward(outs, [weights_like(library, r) for r in outs])
    orders = {f"result {i}": order_of(r) for i, r in enumerate(results)}
    grads = {f"grad {i}": order_of(t.grad) for i, t in enumerate(kept) if t.grad is not None}
    return orders | grads


@pytest.mark.parametrize("case", CASES)
def test_memory_order_of_modules(case) -> None:
    try:
        theirs = orders_of_call(pytorch, case)
    except RuntimeError:
        pytest.skip("PyTorch does not take the layout")
    ours = orders_of_call(torch, case)
    assert ours == theirs or is_accepted(case.expression, memory_orders.MODULES)
