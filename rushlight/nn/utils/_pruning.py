"""Ways to choose what of a tensor is pruned, and the hooks that prune it.

A pruned parameter `weight` becomes a parameter weight_orig and a buffer weight_mask, and a hook
sets the attribute weight to their product before each forward. Invariant: a tensor has one pruning
hook; several methods on it, one after the other, are kept in a PruningContainer.
"""

from __future__ import annotations

import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.nn.modules.module import Module


class BasePruningMethod(ABC):
    """A way to choose what of a tensor is pruned, and the hook that prunes it.

    A subclass defines compute_mask and PRUNING_TYPE: "unstructured" if it sees only the elements
    that are still there, as a vector; "structured" if it sees only the channels along `dim` that
    are still there; "global" if it sees all.
    """

    PRUNING_TYPE: str
    _tensor_name: str

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Returns a mask for a tensor: 0 for what is pruned, 1 for what stays.

        Args:
            t: how important each element is.
            default_mask: the mask from before, of the same shape.
        """

    def apply_mask(self, module: Module) -> Tensor:
        """Returns the parameter with zeros where its mask has them."""
        original = getattr(module, f"{self._tensor_name}_orig")
        return getattr(module, f"{self._tensor_name}_mask").to(original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prunes a parameter of a module, once more if it is pruned already.

        Args:
            module: what the parameter belongs to.
            name: its name.
            args: arguments of the class.
            importance_scores: how important each element is; the parameter itself unless given.
            kwargs: keyword arguments of the class.

        Returns:
            The hook: a method of this class, or the container that it is in.
        """
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        present = hook_of(module, name)
        if present is not None:
            old = present[1]
            methods = old if isinstance(old, PruningContainer) else (old,)
            method = PruningContainer(*methods, method)
        original = getattr(module, name)
        scores = _scores(importance_scores, original, f"parameter {name} of {module}")
        if present is None:
            module.register_parameter(f"{name}_orig", original)
            del module._parameters[name]
            default_mask = rl.ones_like(original)
        else:
            default_mask = getattr(module, f"{name}_mask").detach().clone()
        try:
            mask = method.compute_mask(scores, default_mask=default_mask)
            module.register_buffer(f"{name}_mask", mask)
            setattr(module, name, method.apply_mask(module))
            if present is not None:
                del module._forward_pre_hooks[present[0]]
            module.register_forward_pre_hook(method)
        except Exception:
            if present is None:
                del module._parameters[f"{name}_orig"]
                module.register_parameter(name, original)
            raise
        return method

    def prune(
        self,
        t: Tensor,
        default_mask: Tensor | None = None,
        importance_scores: Tensor | None = None,
    ) -> Tensor:
        """Returns a tensor with zeros where this method prunes it.

        Args:
            t: the tensor.
            default_mask: a mask from before; ones unless given.
            importance_scores: how important each element is; t itself unless given.

        Example:
            >>> from rushlight.nn.utils import prune
            >>> prune.L1Unstructured(2).prune(torch.tensor([3.0, -1.0, 2.0])).tolist()
            [3.0, -0.0, 0.0]
        """
        scores = _scores(importance_scores, t, "tensor t")
        default_mask = rl.ones_like(t) if default_mask is None else default_mask
        return t * self.compute_mask(scores, default_mask=default_mask)

    def remove(self, module: Module) -> None:
        """Makes the parameter an ordinary one, with its zeros; does not take out the hook."""
        name = self._tensor_name
        pruned = self.apply_mask(module)
        delattr(module, name)
        original = module._parameters[f"{name}_orig"]
        original.data = pruned.detach()
        del module._parameters[f"{name}_orig"]
        del module._buffers[f"{name}_mask"]
        setattr(module, name, original)


def hook_of(module: Module, name: str) -> tuple[int, BasePruningMethod] | None:
    """Returns the pruning hook of a module's tensor, and its key."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            return key, hook
    return None


def _scores(given: Tensor | None, tensor: Tensor, what: str) -> Tensor:
    if given is None:
        return tensor
    if given.shape != tensor.shape:
        raise AssertionError(
            f"importance_scores should have the same shape as {what}, got {given.shape} vs "
            f"{tensor.shape}"
        )
    return given


class PruningContainer(BasePruningMethod):
    """Pruning methods that were applied to one tensor, one after the other.

    Args:
        args: the methods, the first one first.
    """

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if args:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Adds a method.

        Raises:
            TypeError: if it is no pruning method.
            ValueError: if it prunes another tensor.
        """
        if not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if self._tensor_name != method._tensor_name:
            raise ValueError(
                "Can only add pruning methods acting on the parameter named "
                f"'{self._tensor_name}' to PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Returns the mask from before with the last method's, on what is left, put into it."""
        method = self._pruning_methods[-1]
        mask = default_mask.to(t.dtype, copy=True)
        left = _left_by(method, default_mask)
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(t.dtype)
        return mask


def _left_by(method: BasePruningMethod, mask: Tensor) -> Any:
    """The index of those parts of a masked tensor that a method may still prune."""
    if method.PRUNING_TYPE == "unstructured":
        return mask == 1
    if method.PRUNING_TYPE == "global":
        return (slice(None),) * mask.ndim
    if method.PRUNING_TYPE != "structured":
        raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
    if not hasattr(method, "dim"):
        raise AttributeError(
            'Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.'
        )
    dim: int = method.dim  # pyright: ignore[reportAttributeAccessIssue]
    if dim < -mask.ndim:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {mask.ndim}")
    dim %= mask.ndim
    others = [d for d in range(mask.ndim) if d != dim]
    return (*[slice(None)] * dim, mask.sum(others) != 0)


class Identity(BasePruningMethod):
    """Prunes nothing, but makes the mask."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Returns the mask from before."""
        return default_mask


# Programs with methods of their own use these by PyTorch's names.


def _validate_pruning_amount_init(amount: float) -> None:
    """Raises unless amount is a number of units, or a share of them."""
    if not isinstance(amount, numbers.Real):
        raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
    is_count = isinstance(amount, numbers.Integral)
    if amount < 0 or (not is_count and amount > 1):
        raise ValueError(
            f"amount={amount} should either be a float in the range [0, 1] or a non-negative "
            "integer"
        )


def _validate_pruning_amount(amount: float, tensor_size: int) -> None:
    """Raises ValueError if amount is a number of more units than there are."""
    if isinstance(amount, numbers.Integral) and amount > tensor_size:
        raise ValueError(
            f"amount={amount} should be smaller than the number of parameters to "
            f"prune={tensor_size}"
        )


def _compute_nparams_toprune(amount: float, tensor_size: int) -> int:
    """Returns how many units of so many amount is."""
    return int(amount) if isinstance(amount, numbers.Integral) else round(amount * tensor_size)


def _validate_structured_pruning(t: Tensor) -> None:
    """Raises ValueError if a tensor has no channels."""
    if t.ndim < 2:
        raise ValueError(
            "Structured pruning can only be applied to multidimensional tensors. Found tensor "
            f"of shape {t.shape} with {t.ndim} dims"
        )


def _validate_pruning_dim(t: Tensor, dim: int) -> None:
    """Raises IndexError if a tensor has no such dim."""
    if not -t.ndim <= dim < t.ndim:
        raise IndexError(f"Invalid index {dim} for tensor of size {t.shape}")


def _compute_norm(t: Tensor, n: Any, dim: int) -> Tensor:
    """Returns the norms of order n of the channels along a dim."""
    return rl.norm(t, n, [d for d in range(t.ndim) if d != dim % t.ndim])


class _Amount(BasePruningMethod):
    """A method that prunes a number of units, or a share of them."""

    def __init__(self, amount: float) -> None:
        _validate_pruning_amount_init(amount)
        self.amount = amount

    def _count(self, units: int) -> int:
        _validate_pruning_amount(self.amount, units)
        return _compute_nparams_toprune(self.amount, units)


class _Unstructured(_Amount):
    """Prunes the elements with the lowest scores."""

    PRUNING_TYPE = "unstructured"

    def _rank(self, t: Tensor) -> Tensor:
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Returns the mask from before with zeros at the elements that are chosen."""
        count = self._count(t.numel())
        mask = default_mask.clone(memory_format=rl.contiguous_format)
        if count:
            lowest = self._rank(t.detach()).reshape(-1).topk(count, largest=False)[1]
            mask.view(-1)[lowest] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Prunes elements at random.

    Args:
        amount: how many, as an int, or which share of them, as a float from 0 to 1.

    Raises:
        TypeError: if amount is no number.
        ValueError: if it is out of range.
    """

    def _rank(self, t: Tensor) -> Tensor:
        return rl.rand_like(t)


class L1Unstructured(_Unstructured):
    """Prunes the elements of the smallest magnitude.

    Args:
        amount: how many, as an int, or which share of them, as a float from 0 to 1.

    Raises:
        TypeError: if amount is no number.
        ValueError: if it is out of range.
    """

    def _rank(self, t: Tensor) -> Tensor:
        return t.abs()


class _Structured(_Amount):
    """Prunes the channels along a dim with the lowest scores."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    def _rank(self, t: Tensor) -> Tensor:
        """The score of each channel."""
        raise NotImplementedError

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Returns the mask from before with zeros in the channels that are chosen.

        Raises:
            ValueError: if t has less than two dims, or not as many channels as are to be pruned.
            IndexError: if t has no such dim.
        """
        _validate_structured_pruning(t)
        _validate_pruning_dim(t, self.dim)
        count = self._count(t.shape[self.dim])
        if not count:
            return default_mask
        kept = self._rank(t.detach()).topk(t.shape[self.dim] - count)[1]
        mask = rl.zeros_like(t, requires_grad=False).index_fill_(self.dim, kept, 1)
        return mask * default_mask.to(mask.dtype)


class RandomStructured(_Structured):
    """Prunes channels at random.

    Args:
        amount: how many, as an int, or which share of them, as a float from 0 to 1.
        dim: the dim that channels lie along.

    Raises:
        TypeError: if amount is no number.
        ValueError: if it is out of range.
    """

    def _rank(self, t: Tensor) -> Tensor:
        return rl.rand(t.shape[self.dim], device=t.device)


class LnStructured(_Structured):
    """Prunes the channels of the smallest norm.

    Args:
        amount: how many, as an int, or which share of them, as a float from 0 to 1.
        n: order of the norm, as in torch.norm.
        dim: the dim that channels lie along.

    Raises:
        TypeError: if amount is no number.
        ValueError: if it is out of range.
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _rank(self, t: Tensor) -> Tensor:
        return _compute_norm(t, self.n, self.dim)


class CustomFromMask(BasePruningMethod):
    """Prunes what a mask says.

    Args:
        mask: 0 for what is pruned, 1 for what stays.
    """

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Returns the mask from before times this one."""
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape "
                f"{self.mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)
