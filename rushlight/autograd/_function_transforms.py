"""What vmap and forward mode make of an autograd.Function: calls of its own rules.

See Note [Lifted tensors] in core/tensor/lift.h.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from rushlight import _C, Tensor, zeros_like
from rushlight._functorch.vmap import _read_out_dims
from rushlight._grad_mode import no_grad
from rushlight.autograd.function import Function, FunctionCtx, FunctionMeta
from rushlight.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["VmapInfo", "apply_lifted"]


class VmapInfo(NamedTuple):
    """What a Function's vmap is told: the number of samples, and what random ops shall do."""

    batch_size: int
    randomness: str


class _Notes(FunctionCtx):
    """A context that is no node: it only holds what a Function noted."""

    to_save: tuple[Tensor | None, ...] = ()
    saved_for_forward: tuple[Tensor | None, ...] = ()
    saved_tensors: tuple[Tensor | None, ...] = ()
    non_differentiable: tuple[Tensor, ...] = ()
    needs_input_grad: tuple[bool, ...] = ()
    materialize_grads: bool = True


def apply_lifted(cls: type[Function], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a Function some arguments of which are lifted."""
    if kwargs:
        raise TypeError(
            f"{cls.__name__}.apply: keyword arguments are not possible inside vmap and "
            "forward-mode differentiation. Pass all by position."
        )
    lifts = [_C._lift_of(a) if isinstance(a, Tensor) else None for a in args]
    level = max(lift[1] for lift in lifts if lift is not None)
    at_level = [lift is not None and lift[1] == level for lift in lifts]
    values = [
        lift[2] if here and lift is not None else arg
        for arg, lift, here in zip(args, lifts, at_level, strict=True)
    ]
    kind = next(
        lift[0] for lift, here in zip(lifts, at_level, strict=True) if here and lift is not None
    )
    if kind == "batch":
        return _apply_to_samples(cls, values, at_level, level)
    tangents = [
        lift[3] if here and lift is not None else None
        for lift, here in zip(lifts, at_level, strict=True)
    ]
    return _apply_to_duals(cls, args, values, tangents, level)


# vmap


def _apply_to_samples(
    cls: type[Function], values: list[Any], has_samples: list[bool], level: int
) -> Any:
    in_dims = tuple(0 if has else None for has in has_samples)
    if cls.generate_vmap_rule:
        if cls.vmap is not Function.vmap:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True "
                "and an overridden vmap staticmethod. Please set generate_vmap_rule=False or "
                "delete the overridden vmap staticmethod to avoid ambiguity."
            )
        outputs, out_dims = _over_samples(cls, in_dims).apply(*values), 0
    else:
        if cls.vmap is Function.vmap:
            raise RuntimeError(
                f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please "
                "override and implement the vmap staticmethod or set generate_vmap_rule=True."
            )
        size, randomness = _C._level_info(level)
        found = cls.vmap(VmapInfo(size, randomness), in_dims, *values)
        if not isinstance(found, tuple) or len(found) != 2:
            raise RuntimeError(
                f"Expected the vmap staticmethod of {cls.__name__} to have two returns: the "
                f"results and the dim of the batch in each of them. Got {type(found).__name__}"
                f"{f' of {len(found)}' if isinstance(found, tuple) else ''}."
            )
        outputs, out_dims = found
    leaves, spec = tree_flatten(outputs)  # an operator of a program returns lists, too
    dims = _read_out_dims(spec, out_dims, cls.__name__)
    lifted = [_lift(leaf, dim, level) for leaf, dim in zip(leaves, dims, strict=True)]
    return tree_unflatten(lifted, spec)


def _lift(output: Any, dim: int | None, level: int) -> Any:
    if dim is None or not isinstance(output, Tensor):
        return output
    return _C._lift_samples(output.movedim(dim, 0), level)


def _over_samples(cls: type[Function], in_dims: tuple[int | None, ...]) -> type[Function]:
    """The Function that runs forward and backward of another one by vmap."""
    from rushlight.func import vmap

    notes = _Notes()
    kept: list[Tensor] = []
    places: list[tuple[str, int] | None] = []
    shapes: list[Any] = []  # of each argument of a sample

    class OverSamples(Function):
        generate_vmap_rule = True  # for a vmap around this one

        @staticmethod
        def forward(*args: Any) -> Any:
            def run(*samples: Any) -> Any:
                shapes[:] = [getattr(sample, "shape", None) for sample in samples]
                output = cls.forward(*samples)
                cls.setup_context(notes, samples, output)
                several = output if isinstance(output, tuple) else (output,)
                others: list[Tensor] = []
                places[:] = [_place(t, samples, several, others) for t in _saved(notes)]
                return several, tuple(others)

            outputs, kept[:] = vmap(run, in_dims=in_dims)(*args)
            return outputs if len(outputs) > 1 else outputs[0]

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            of = {"input": inputs, "other": kept}
            of["output"] = output if isinstance(output, tuple) else (output,)
            there = [place for place in places if place is not None]
            ctx.save_for_backward(*(of[kind][i] for kind, i in there))
            ctx.save_for_forward(*(of[kind][i] for kind, i in there))
            ctx.dims = tuple(in_dims[i] if kind == "input" else 0 for kind, i in there)
            ctx.places = [place is not None for place in places]
            ctx.notes = notes

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            wanted: list[int] = []

            def run(*samples: Tensor) -> tuple[Tensor, ...]:
                ctx.notes.needs_input_grad = ctx.needs_input_grad
                found = cls.backward(ctx.notes, *_restored(ctx, grads, samples))
                several = found if isinstance(found, tuple) else (found,)
                wanted[:] = [i for i, g in enumerate(several) if g is not None]
                return tuple(_summed_to(several[i], shapes[i]) for i in wanted)

            given = [g for g in grads if g is not None]
            found = vmap(run, in_dims=ctx.dims + (0,) * len(given))(*ctx.saved_tensors, *given)
            gradients: list[Any] = [None] * len(in_dims)
            for i, gradient in zip(wanted, found, strict=True):
                gradients[i] = gradient.sum(0) if in_dims[i] is None else gradient
            return tuple(gradients)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            there = [i for i, t in enumerate(tangents) if t is not None]
            dims = ctx.dims + tuple(in_dims[i] for i in there)

            def run(*samples: Tensor) -> Any:
                return cls.jvp(ctx.notes, *_restored(ctx, tangents, samples))

            return vmap(run, in_dims=dims)(*ctx.saved_tensors, *(tangents[i] for i in there))

    OverSamples.__name__ = cls.__name__
    return OverSamples


def _summed_to(gradient: Tensor, shape: Any) -> Tensor:
    """A gradient in the shape of its input, which may have been broadcast."""
    return gradient if gradient.shape == shape else gradient.sum_to_size(shape)


def _saved(notes: _Notes) -> tuple[Tensor | None, ...]:
    return notes.to_save or notes.saved_for_forward


def _place(
    saved: Tensor | None, inputs: tuple[Any, ...], outputs: tuple[Any, ...], others: list[Tensor]
) -> tuple[str, int] | None:
    """Where a saved tensor comes from: with inputs and outputs gradients go on to their history."""
    if saved is None:
        return None
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for i, tensor in enumerate(tensors):
            if tensor is saved:
                return kind, i
    others.append(saved)
    return "other", len(others) - 1


def _restored(ctx: Any, given: tuple[Any, ...], samples: tuple[Tensor, ...]) -> list[Any]:
    """Gives the notes their saved tensors, and returns what was `given`, of one sample."""
    left = iter(samples)
    ctx.notes.saved_tensors = tuple(next(left) if there else None for there in ctx.places)
    return [None if x is None else next(left) for x in given]


# Forward mode


def _apply_to_duals(
    cls: type[Function], args: tuple[Any, ...], values: list[Any], tangents: list[Any], level: int
) -> Any:
    if cls.jvp is Function.jvp:
        cls.jvp(None)  # says that it is not there
    notes = _Notes()
    outputs, noted = _apply_with_notes(cls, values, notes)
    notes.saved_tensors = notes.saved_for_forward or notes.to_save
    given = tangents
    if notes.materialize_grads:
        given = [
            zeros_like(value) if tangent is None and _is_differentiable(value) else tangent
            for value, tangent in zip(values, tangents, strict=True)
        ]
    derivatives = cls.jvp(notes, *given)

    def dual(output: Any, noted: Any, tangent: Any) -> Any:
        if any(noted is fixed for fixed in notes.non_differentiable):
            if tangent is not None:
                raise RuntimeError(
                    f"{cls.__name__}.jvp returned a tangent for a result that forward marked as "
                    "not differentiable. You should return None at that position instead."
                )
            return output
        for i, value in enumerate(values):
            if output is value and tangents[i] is not None:  # written in place
                if tangent is not given[i]:
                    raise RuntimeError(
                        f"{cls.__name__}.jvp: an inplace custom Function is not modifying the "
                        "forward mode gradients inplace. Write the tangent of what forward marked "
                        "as dirty in place, and return it."
                    )
                return args[i]
        return output if tangent is None else _C._lift_dual(output, tangent, level)

    if not isinstance(outputs, tuple):
        return dual(outputs, noted, derivatives)
    return tuple(dual(*parts) for parts in zip(outputs, noted, derivatives, strict=True))


def _is_differentiable(value: Any) -> bool:
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def _apply_with_notes(cls: type[Function], values: list[Any], notes: _Notes) -> tuple[Any, Any]:
    """The results of a Function, and what it took notes of in their places."""
    if cls.setup_context is not Function.setup_context:
        outputs = cls.apply(*values)
        with no_grad():
            cls.setup_context(notes, tuple(values), outputs)
        return outputs, outputs
    noted: Any = None

    def forward(ctx: Any, *args: Any) -> Any:
        nonlocal noted
        noted = cls.forward(ctx, *args)
        vars(notes).update(vars(ctx))
        notes.to_save = ctx.to_save or ()
        notes.saved_for_forward = ctx.saved_for_forward or ()
        notes.non_differentiable = ctx.non_differentiable or ()
        notes.needs_input_grad = ctx.needs_input_grad
        notes.materialize_grads = ctx.materialize_grads
        return noted

    if not any(isinstance(value, Tensor) and _C._lift_of(value) for value in values):
        noting: Any = FunctionMeta(cls.__name__, (cls,), {"forward": staticmethod(forward)})
        return noting.apply(*values), noted
    # What it would note now lies behind these values, so it runs again on copies of them.
    outputs = cls.apply(*values)
    with no_grad():
        noted = cls.forward(notes, *(v.clone() if isinstance(v, Tensor) else v for v in values))
    return outputs, noted
