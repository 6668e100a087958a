"""What back ends of torch.compile are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def aot_autograd(**kwargs: Any) -> Callable[..., Any]:
    """Returns a back end that hands over graphs of the results and of the gradients.

    Args:
        kwargs: those of functorch.compile.aot_function: fw_compiler, bw_compiler, ...

    Example:
        >>> from rushlight._dynamo.backends.common import aot_autograd
        >>> back_end = aot_autograd(fw_compiler=lambda module, inputs: module.forward)
        >>> x = torch.ones(2, requires_grad=True)
        >>> torch.compile(torch.square, backend=back_end)(x).sum().backward()
        >>> x.grad
        tensor([2., 2.])
    """

    def back_end(gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        from rushlight._functorch.aot_autograd import aot_module_simplified

        return aot_module_simplified(gm, example_inputs, **kwargs)

    return back_end
