"""Parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import rushlight as rl
from rushlight import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """Returns the elements of all parameters, one after the other, as one vector.

    Args:
        parameters: tensors on one device.

    Example:
        >>> weights = [torch.ones(2), torch.zeros(1, 1)]
        >>> torch.nn.utils.parameters_to_vector(weights).tolist()
        [1.0, 1.0, 0.0]
    """
    return rl.cat([parameter.reshape(-1) for parameter in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Gives the elements of a vector to parameters, in order; they share its memory.

    Args:
        vec: vector with as many elements as the parameters have together.
        parameters: tensors to set.

    Raises:
        TypeError: if vec is not a tensor.
        RuntimeError: if the numbers of elements differ.

    Example:
        >>> w = torch.nn.Parameter(torch.zeros(2))
        >>> torch.nn.utils.vector_to_parameters(torch.tensor([1.0, 2.0]), [w])
        >>> w.tolist()
        [1.0, 2.0]
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected Tensor, but got: {type(vec).__name__}")
    parameters = list(parameters)
    sizes = [parameter.numel() for parameter in parameters]
    if sum(sizes) != vec.numel():
        raise RuntimeError(
            f"vector_to_parameters: vec has {vec.numel()} elements, but the parameters have "
            f"{sum(sizes)}."
        )
    for parameter, part in zip(parameters, vec.split(sizes), strict=True):
        parameter.data = part.view(parameter.shape).detach()
