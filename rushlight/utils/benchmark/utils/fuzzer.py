"""Random parameters and tensors to measure code on."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import rushlight as rl
from rushlight import Tensor

__all__ = ["FuzzedParameter", "FuzzedTensor", "Fuzzer", "ParameterAlias"]

_MOST_ATTEMPTS = 1000


class ParameterAlias:
    """Stands for the value of another parameter, as a choice of a distribution.

    Args:
        alias_to: the name of the other.
    """

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A number, or anything else, that is drawn at random.

    Args:
        name: what tensors and constraints call it.
        minval, maxval: the bounds, both included; whole numbers are drawn if both are.
        distribution: "uniform"; "loguniform", in which a number from 1 to 10 is as likely as one
            from 10 to 100; or a dict of choices and their probabilities, without bounds.
        strict: whether it stays as it is when others are drawn again.

    Raises:
        ValueError: if bounds are missing, out of order, or given with choices, or if there are no
            choices.
    """

    def __init__(
        self,
        name: str,
        minval: float | None = None,
        maxval: float | None = None,
        distribution: str | Mapping[Any, float] = "uniform",
        strict: bool = False,
    ) -> None:
        self.name = name
        self.strict = strict
        self._draw = _drawing(minval, maxval, distribution)

    def sample(self, state: random.Random) -> Any:
        """Draws a value."""
        return self._draw(state)


class FuzzedTensor:
    """A tensor whose size depends on parameters.

    Args:
        name: what the results call it.
        size: for each dim a number or the name of a parameter.
        steps: in which steps the tensor is cut from a larger one, as size.
        probability_contiguous: how probable it is that the larger one has dims in memory in the
            order of its shape; else it has another.
        min_elements, max_elements: how many elements it may have; parameters that make others are
            drawn again.
        max_allocation_bytes: how large the larger one may be.
        dim_parameter: the parameter that says how many of the dims there are; all if None.
        roll_parameter: accepted for PyTorch's sake.
        dtype: its dtype.
        cuda: whether it is on the GPU.
        tensor_constructor: takes size, dtype and the parameters as keywords and returns the larger
            one; default_tensor_constructor if None.
    """

    def __init__(
        self,
        name: str,
        size: Sequence[str | int],
        steps: Sequence[str | int] | None = None,
        probability_contiguous: float = 0.5,
        min_elements: int | None = None,
        max_elements: int | None = None,
        max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None,
        roll_parameter: str | None = None,
        dtype: rl.dtype = rl.float32,
        cuda: bool = False,
        tensor_constructor: Callable[..., Tensor] | None = None,
    ) -> None:
        self.name = name
        self._size = tuple(size)
        self._steps = tuple(steps or ())
        self._probability_contiguous = probability_contiguous
        self._elements = (min_elements or 0, math.inf if max_elements is None else max_elements)
        self._most_bytes = math.inf if max_allocation_bytes is None else max_allocation_bytes
        self._dim_parameter = dim_parameter
        self._dtype = dtype
        self._device = "cuda" if cuda else "cpu"
        self._construct = tensor_constructor or self.default_tensor_constructor

    @staticmethod
    def default_tensor_constructor(size: Sequence[int], dtype: rl.dtype, **params: Any) -> Tensor:
        """Returns random numbers: from 0 to 1, or integers from 1 to 126."""
        if dtype.is_floating_point or dtype.is_complex:
            return rl.rand(size, dtype=dtype)
        low, high = (0, 2) if dtype == rl.bool else (1, 127)
        return rl.randint(low, high, size).to(dtype)

    def satisfies_constraints(self, params: Mapping[str, Any]) -> bool:
        """Returns whether the parameters make a tensor of the sizes that it may have."""
        size, steps = self._size_and_steps(params)
        fewest, most = self._elements
        whole = math.prod(size) * math.prod(steps) * self._dtype.itemsize
        return fewest <= math.prod(size) <= most and whole <= self._most_bytes

    def _size_and_steps(self, params: Mapping[str, Any]) -> tuple[list[int], list[int]]:
        dim = params[self._dim_parameter] if self._dim_parameter else len(self._size)
        given = [params[x] if isinstance(x, str) else x for x in self._size[:dim]]
        steps = [params[x] if isinstance(x, str) else x for x in self._steps[:dim]]
        return given, steps + [1] * (len(given) - len(steps))

    def _make_tensor(
        self, params: Mapping[str, Any], state: random.Random
    ) -> tuple[Tensor, dict[str, Any]]:
        size, steps = self._size_and_steps(params)
        whole = [n * step for n, step in zip(size, steps, strict=True)]
        tensor = self._construct(size=whole, dtype=self._dtype, **params).to(self._device)
        order = list(range(len(size)))
        if len(size) > 1 and state.random() >= self._probability_contiguous:
            while order == sorted(order):
                state.shuffle(order)
            back = sorted(order, key=order.__getitem__)
            tensor = tensor.permute(order).contiguous().permute(back)
        tensor = tensor[tuple(slice(None, None, step) for step in steps)]
        return tensor, {
            "numel": tensor.numel(),
            "order": order,
            "steps": steps,
            "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }


class Fuzzer:
    """Draws parameters, and tensors by them.

    Args:
        parameters: FuzzedParameters, and lists of them.
        tensors: FuzzedTensors, and lists of them.
        constraints: functions that take all parameters as keywords and return whether they will do.
        seed: that of the parameters, and of torch for the elements; a random one if None.

    Raises:
        ValueError: if two parameters have one name.

    Example:
        >>> from rushlight.utils.benchmark import FuzzedParameter, FuzzedTensor, Fuzzer
        >>> size = FuzzedParameter("n", minval=2, maxval=8)
        >>> fuzzer = Fuzzer([size], [FuzzedTensor("x", size=("n", 3))], seed=0)
        >>> for tensors, tensor_params, params in fuzzer.take(2):
        ...     print(tensors["x"].shape == (params["n"], 3), tensor_params["x"]["steps"])
        True [1, 1]
        True [1, 1]
    """

    def __init__(
        self,
        parameters: Iterable[FuzzedParameter | Iterable[FuzzedParameter]],
        tensors: Iterable[FuzzedTensor | Iterable[FuzzedTensor]],
        constraints: Sequence[Callable[..., Any]] | None = None,
        seed: int | None = None,
    ) -> None:
        self._parameters = list(_unpacked(parameters, FuzzedParameter))
        self._tensors = list(_unpacked(tensors, FuzzedTensor))
        self._constraints = constraints or ()
        self._seed = random.getrandbits(62) if seed is None else seed
        self._attempts = self._rejections = 0
        names = [p.name for p in self._parameters]
        if len(set(names)) < len(names):
            raise ValueError(f"Fuzzer: parameters must have names of their own, got {names}")

    @property
    def rejection_rate(self) -> float:
        """The part of the draws that would not do."""
        return self._rejections / self._attempts if self._attempts else 0.0

    def take(self, n: int) -> Iterator[tuple[dict[str, Tensor], dict[str, Any], dict[str, Any]]]:
        """Yields n times tensors by name, what is said of each, and the parameters.

        Raises:
            ValueError: if no parameters that will do are found.
        """
        state = random.Random(self._seed)
        rl.manual_seed(state.getrandbits(62))
        for _ in range(n):
            params = self._generate(state)
            made = {x.name: x._make_tensor(params, state) for x in self._tensors}
            tensors = {name: tensor for name, (tensor, _) in made.items()}
            yield tensors, {name: properties for name, (_, properties) in made.items()}, params

    def _generate(self, state: random.Random) -> dict[str, Any]:
        kept = {p.name: p.sample(state) for p in self._parameters if p.strict}
        for _ in range(_MOST_ATTEMPTS):
            self._attempts += 1
            drawn = {p.name: p.sample(state) for p in self._parameters if not p.strict}
            params = _resolved({**kept, **drawn})
            if all(rule(**params) for rule in self._constraints) and all(
                tensor.satisfies_constraints(params) for tensor in self._tensors
            ):
                return params
            self._rejections += 1
        raise ValueError("Fuzzer: failed to generate a set of valid parameters.")


def _drawing(
    minval: float | None, maxval: float | None, distribution: str | Mapping[Any, float]
) -> Callable[[random.Random], Any]:
    """The function that draws a parameter."""
    if not isinstance(distribution, str):
        if minval is not None or maxval is not None:
            raise ValueError(
                "FuzzedParameter: choices cannot be bounded; leave minval, maxval out."
            )
        choices, weights = list(distribution), list(distribution.values())
        if min(weights, default=-1) < 0 or not any(weights):
            raise ValueError(f"FuzzedParameter: {weights} are no probabilities of choices.")
        return lambda state: state.choices(choices, weights)[0]
    if minval is None or maxval is None or minval > maxval:
        raise ValueError(f"FuzzedParameter: needs minval <= maxval, got {minval} and {maxval}")
    low, high = minval, maxval
    is_whole = isinstance(low, int) and isinstance(high, int)
    if distribution == "uniform":
        return lambda s: s.randint(int(low), int(high)) if is_whole else s.uniform(low, high)
    if distribution != "loguniform" or low <= 0:
        raise ValueError(
            "FuzzedParameter: distribution must be 'uniform', or 'loguniform' with minval > 0, "
            f"got {distribution!r} with minval={minval}"
        )

    def draw(state: random.Random) -> float:
        value = min(max(2 ** state.uniform(math.log2(low), math.log2(high)), low), high)
        return round(value) if is_whole else value

    return draw


def _unpacked(items: Iterable[Any], cls: type) -> Iterator[Any]:
    for item in items:
        if isinstance(item, cls):
            yield item
        else:
            yield from item


def _resolved(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters with values in the place of aliases."""

    def value(name: str, passed: tuple[str, ...]) -> Any:
        found = params[name]
        if not isinstance(found, ParameterAlias):
            return found
        if name in passed:
            raise ValueError(f"Fuzzer: aliases go in a circle: {' -> '.join((*passed, name))}")
        return value(found.alias_to, (*passed, name))

    return {name: value(name, ()) for name in params}
