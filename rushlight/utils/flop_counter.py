"""Counts of floating-point operations, by module and by op, forward and backward.

Products, convolutions and attention are counted, as the formulas of nn.modules._multiply_adds say:
two operations for a multiplication with its addition. What an op costs in backward is noted with
its node on the tape and added when backward comes to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, Self, TypeVar

from rushlight import Tensor, nn
from rushlight._op_overload import OpOverloadPacket
from rushlight._overridable import function_of
from rushlight.nn.modules._multiply_adds import multiply_adds
from rushlight.overrides import TorchFunctionMode
from rushlight.utils._pytree import tensor_leaves, tree_map
from rushlight.utils.module_tracker import ModuleCalls

F = TypeVar("F", bound=Callable[..., int])

__all__ = ["FlopCounterMode", "flop_registry", "register_flop_formula"]

# Formulas that programs registered, by the functions that they are for.
flop_registry: dict[Any, Callable[..., int]] = {}

# Where the two factors of a product stand among its tensors; what is not here has more of them.
_FIRST, _AFTER_SUM = slice(0, 2), slice(1, 3)
_FACTORS = {
    **dict.fromkeys(("linear", "matmul", "mm", "bmm", "mv", "dot", "vdot", "__matmul__"), _FIRST),
    **dict.fromkeys(("conv1d", "conv2d", "conv3d", "convolution", "conv_transpose1d"), _FIRST),
    **dict.fromkeys(("conv_transpose2d", "conv_transpose3d"), _FIRST),
    **dict.fromkeys(("addmm", "addmv", "baddbmm", "addbmm"), _AFTER_SUM),
}

_SUFFIXES = ("", "K", "M", "B", "T")


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[F], F]:
    """Returns a decorator for a formula: how many operations a function does.

    Args:
        targets: the function, torch.mm or torch.ops.aten.mm, or a list of functions.
        get_raw: whether the formula gets the arguments and out_val, the result; without it, it gets
            the shapes of tensors and out_shape.

    Example:
        >>> @torch.utils.flop_counter.register_flop_formula(torch.cumsum)
        ... def cumsum_flop(x, *args, out_shape=None, **kwargs):
        ...     return x.numel()
        >>> with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
        ...     total = torch.ones(10).cumsum(0)
        >>> counter.get_total_flops()
        10
        >>> _ = torch.utils.flop_counter.flop_registry.pop(torch.cumsum)
    """

    def register(formula: F) -> F:
        counted = formula if get_raw else _of_shapes(formula)
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = counted
        return formula

    return register


def _of_shapes(formula: Callable[..., int]) -> Callable[..., int]:
    """A formula of arguments from one of shapes."""

    def counted(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, shape = tree_map(
            lambda x: x.shape if isinstance(x, Tensor) else x, (args, kwargs, out_val)
        )
        return formula(*args, out_shape=shape, **kwargs)

    return counted


def _called_by(target: Any) -> Any:
    """The function that a program calls for torch.ops.aten.add and the like; others themselves."""
    return function_of(target) if isinstance(target, OpOverloadPacket) else target


class FlopCounterMode(TorchFunctionMode):
    """Counts the floating-point operations of what runs in a with block, and prints a table.

    Args:
        mods: has no effect: modules are known by themselves.
        depth: how many levels of modules the table shows.
        display: whether to print the table at the end.
        custom_mapping: formulas for functions, which get the shapes of their tensors and out_shape;
            one whose _get_raw is True gets the tensors and out_val.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        >>> with torch.utils.flop_counter.FlopCounterMode() as counter:
        ...     net(torch.ones(10, 4)).sum().backward()
        Module            FLOP  % Total
        --------------  ------  -------
        Global          2.240K  100.00%
         Sequential     2.240K  100.00%
          Sequential.0  1.280K   57.14%
          Sequential.2  0.960K   42.86%
        >>> counter.get_total_flops()
        2240
    """

    _hears_attributes = False

    def __init__(
        self,
        mods: nn.Module | list[nn.Module] | None = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        self.depth = depth
        self.display = display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        own = {
            target: formula if getattr(formula, "_get_raw", False) else _of_shapes(formula)
            for target, formula in (custom_mapping or {}).items()
        }
        self._formulas = {_called_by(t): formula for t, formula in {**flop_registry, **own}.items()}
        self._open: list[str] = ["Global"]  # modules that run
        self._calls = ModuleCalls(
            lambda name, _: self._open.append(name), lambda *_: self._open.pop()
        )

    def get_total_flops(self) -> int:
        """Returns the sum of all operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """Returns the operations by the names of modules and of ops; "Global" has all."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """Returns the operations of the modules as a table.

        Args:
            depth: how many levels of modules it shows.
        """
        depth = self.depth if depth is None else depth
        total = self.get_total_flops()
        power = 0
        while power + 1 < len(_SUFFIXES) and total >= 1000 ** (power + 1):
            power += 1
        rows: list[tuple[str, ...]] = [("Module", "FLOP", "% Total")]
        for name in sorted(self.flop_counts, key=lambda name: (name != "Global", name)):
            level = 0 if name == "Global" else name.count(".") + 1
            if level > depth:
                continue
            count = sum(self.flop_counts[name].values())
            share = f"{count / total:.2%}" if total else "0%"
            figure = f"{count / 1000**power:.3f}{_SUFFIXES[power]}" if power else str(count)
            rows.append((" " * level + name, figure, share))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        rows.insert(1, tuple("-" * width for width in widths))
        return "\n".join(
            f"{name:<{widths[0]}}  {figure:>{widths[1]}}  {share:>{widths[2]}}"
            for name, figure, share in rows
        )

    def __enter__(self) -> Self:
        self.flop_counts.clear()
        self._calls.__enter__()
        return super().__enter__()

    def __exit__(self, *exc_info: object) -> None:
        super().__exit__(*exc_info)
        self._calls.__exit__(*exc_info)
        self._open = ["Global"]
        if self.display:
            print(self.get_table())

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Runs a function and notes its operations."""
        func = function_of(func)
        kwargs = kwargs or {}
        formula = self._formulas.get(func)
        if formula is not None:
            result = func(*args, **kwargs)
            self._add(list(self._open), func.__name__, formula(*args, **kwargs, out_val=result))
            return result
        before = tensor_leaves((args, kwargs))
        result = func(*args, **kwargs)
        count = multiply_adds(func, args, kwargs, result)
        if count:
            self._note(func.__name__, 2 * count, before, result)
        return result

    def _note(self, op: str, count: int, inputs: list[Tensor], result: Any) -> None:
        """Adds the operations of a call now, and those of its backward when that runs."""
        modules = list(self._open)
        self._add(modules, op, count)
        made = result[0] if isinstance(result, tuple) else result
        if made.grad_fn is None:
            return
        # The gradient of each factor is a product of the same size. Attention has two products:
        # backward does the first again and then two for each (Dao et al. 2022, algorithm 4).
        times = 2.5 if op == "scaled_dot_product_attention" else 2.0
        if op in _FACTORS:
            times = sum(factor.requires_grad for factor in inputs[_FACTORS[op]])

        def add(gradients: Any) -> None:
            if self._calls.is_on:
                self._add(modules, f"{op}_backward", int(times * count))

        made.grad_fn.register_prehook(add)

    def _add(self, modules: list[str], op: str, count: int) -> None:
        for name in dict.fromkeys(modules):
            self.flop_counts[name][op] += count
