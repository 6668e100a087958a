"""Programs of many steps, whose results are arguments of later steps: memory that is shared, freed,
resized and replaced between an op and its gradient."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

from hostile.calls import described, read
from hostile.values import DTYPES, INTEGERS, REALS, WORDS, Values
from ops.matrix import ROWS, function_of

import rushlight as torch

# Ops that no few numbers of memory can hold.
LEFT_OUT = ("randperm", "_window", "tril_indices", "triu_indices", "combinations", "cartesian_prod")
WALKED = [name for name in ROWS if not any(part in name for part in LEFT_OUT)]
SMALL = [0, 1, -1, 2, 3, -2, 1, 0, 4, 5]
SHAPES = [(), (0,), (5,), (3, 4), (3, 4), (4, 3), (2, 3, 4), (2, 3, 4, 4), (4, 4), (1, 2, 6, 6)]
FORMATS = [torch.contiguous_format, torch.channels_last, torch.preserve_format]


class Walk(Values):
    """A program of one seed."""

    def __init__(self, seed: int) -> None:
        super().__init__(f"walk {seed}")
        self.pool = [self.fresh() for _ in range(5)]

    def fresh(self) -> torch.Tensor:
        shape = self.pick(SHAPES)
        dtype = self.pick([torch.float32] * 4 + DTYPES[:-1])
        x = torch.arange(int(torch.Size(shape).numel())).reshape(shape).remainder(4).to(dtype)
        return x.requires_grad_(dtype.is_floating_point and self.chance(0.5))

    def step(self, tell: Callable[[str], Any]) -> None:
        """Makes one call; errors are the caller's."""
        if self.chance(0.12):
            self._keep(self.fresh())
        what, call = self._memory_step() if self.chance(0.35) else self._op()
        tell(what)
        results = call()
        for result in (results if isinstance(results, (list, tuple)) else [results])[:4]:
            if isinstance(result, torch.Tensor) and result.numel() < 10_000:
                tell("    gives " + described(result))
                if self.chance(0.3):
                    read(result)
                if result.numel() or self.chance(0.15):
                    self._keep(result)

    def _keep(self, tensor: torch.Tensor) -> None:
        self.pool[self.source.randrange(len(self.pool))] = tensor

    def _tensor(self) -> torch.Tensor:
        return self.pick(self.pool)

    def _size(self) -> int:
        return self.pick(SMALL) if self.chance(0.92) else self.integer()

    def _sizes(self) -> tuple[int, ...]:
        if self.chance(0.3):
            return tuple(self._tensor().shape)
        return tuple(self._size() for _ in range(self.pick([0, 1, 1, 2, 2, 2, 3, 4])))

    def _op(self) -> tuple[str, Callable[[], Any]]:
        name = self.pick(WALKED)
        row, function = ROWS[name], function_of(name)
        if row["inplace"] and self.chance(0.4):
            function = getattr(torch.Tensor, row["name"] + "_")
        args, kwargs = [], {}
        for i, arg in enumerate(row["args"]):
            if arg["default"] is not None and self.chance(0.6):
                continue
            value = self._of_type(arg["type"], arg["takes_number"])
            if arg["keyword_only"] or len(args) < i:
                kwargs[arg["name"]] = value
            else:
                args.append(value)
        if self.chance(0.1):
            kwargs["out"] = self._tensor()
        named = [f"{key}={described(value)}" for key, value in kwargs.items()]
        text = f"{function.__name__}({', '.join([*map(described, args), *named])})"
        return text, lambda: function(*args, **kwargs)

    def _of_type(self, kind: str, takes_number: bool) -> Any:
        """An argument of a type as schemas write it."""
        if takes_number and self.chance(0.2):
            return self.pick([2, 0.5, 2.0, -1, 0])
        if kind.endswith("?") and self.chance(0.5):
            return None
        match kind.removesuffix("?"):
            case "Tensor" | "Tensor!":
                return self._tensor()
            case "Tensor[]":
                return [self._tensor() for _ in range(self.pick([1, 2, 3]))]
            case "Tensor?[]":
                return [self.pick([None, self._tensor()]) for _ in range(self.pick([1, 2]))]
            case "int":
                return self._size()
            case "int[]":
                return self._sizes()
            case "float":
                return self.pick([0.0, 0.5, 1.0, 2.0, *REALS])
            case "bool":
                return self.chance(0.5)
            case "str":
                return self.pick(WORDS)
            case "Scalar":
                return self.pick([1, 2, 0.5, 0, *INTEGERS, *REALS])
            case "dtype":
                return self.pick(DTYPES)
            case "device":
                return self.pick(["cpu", "meta"])
            case "memory_format":
                return self.pick(FORMATS)
        return None

    def _memory_step(self) -> tuple[str, Callable[[], Any]]:
        """A step that is no op: storages, views, history, hooks and copies."""
        x, y, z = self._tensor(), self._tensor(), self._tensor()
        n, sizes, strides, yes = self._size(), self._sizes(), self._sizes(), self.chance(0.5)

        def free(tensor: torch.Tensor) -> None:
            tensor.untyped_storage().resize_(0)

        steps: dict[str, Callable[[], Any]] = {
            "resize the storage": lambda: x.untyped_storage().resize_(n * 8),
            "free": lambda: free(x),
            "copy a storage": lambda: x.untyped_storage().copy_(y.untyped_storage()),
            "set_ to a storage": lambda: x.set_(y.untyped_storage(), n, sizes, strides),
            "set_": lambda: x.set_(y),
            "set_ to nothing": lambda: x.set_(),
            "resize_": lambda: x.resize_(sizes),
            "resize_as_": lambda: x.resize_as_(y),
            "data =": lambda: setattr(x, "data", y),
            "grad =": lambda: setattr(x, "grad", y),
            "detach_": lambda: x.detach_(),
            "requires_grad_": lambda: x.requires_grad_(yes),
            "detach": lambda: x.detach(),
            "backward": lambda: x.sum().backward(retain_graph=yes, create_graph=n == 0),
            "backward of all": lambda: x.backward(y, retain_graph=yes),
            "grad of": lambda: torch.autograd.grad(
                x.sum(), [y, z], create_graph=yes, allow_unused=True
            ),
            "hook": lambda: x.register_hook(lambda g: z),
            "hook that resizes": lambda: x.register_hook(lambda g: y.resize_(sizes)),
            "hook that frees": lambda: x.register_hook(lambda g: free(y)),
            "swap": lambda: torch.utils.swap_tensors(x, y),
            "as_strided": lambda: x.as_strided(sizes, strides, n),
            "as_strided_": lambda: x.as_strided_(sizes, strides, n),
            "numpy": lambda: torch.from_numpy(x.detach().numpy()),
            "dlpack": lambda: torch.from_dlpack(x.detach()),
            "index": lambda: x[n],
            "index by a tensor": lambda: x[y],
            "slice": lambda: x[n:, ..., ::2],
            "write at a tensor": lambda: x.__setitem__(y, z),
            "write": lambda: x.__setitem__(n, y),
            "view as a dtype": lambda: x.view(self.pick(DTYPES)),
            "retain_grad": lambda: x.retain_grad(),
            "share": lambda: x.share_memory_(),
            "grad": lambda: x.grad,
            "deepcopy": lambda: copy.deepcopy(x),
            "pickle": lambda: pickle.loads(pickle.dumps(x)),
            "vmap": lambda: torch.func.vmap(lambda a, b: a * b + a.sum())(x, y),
            "jvp": lambda: torch.func.jvp(lambda a: a.sin() * y, (x,), (x,)),
            "conj": lambda: x.to(torch.complex64).conj(),
            "t_": lambda: x.t_(),
            "transpose": lambda: x.transpose(0, -1),
            "expand": lambda: x.expand(3, *x.shape),
            "fill_": lambda: x.detach().fill_(n),
            "zero_": lambda: x.zero_(),
            "sparse": lambda: x.to_sparse(),
        }
        what = self.pick(list(steps))
        numbers = f"n={n} sizes={sizes} strides={strides}"
        return f"{what}: {described(x)} {described(y)} {numbers}", steps[what]
