"""The styles of a plan: which parameters of a module are sharded, and how data come and go.

ColwiseParallel and RowwiseParallel one after the other are the two halves of a block whose hidden
features are spread over the ranks: Shoeybi et al., Megatron-LM (2019); SequenceParallel is what
Korthikanti et al. (2022) do between such blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from rushlight import Tensor
from rushlight._repr import Shown
from rushlight.distributed.device_mesh import DeviceMesh
from rushlight.distributed.tensor._api import DTensor
from rushlight.distributed.tensor._making import distribute_module, distribute_tensor
from rushlight.distributed.tensor.placement_types import Placement, Replicate, Shard
from rushlight.nn import Embedding, Linear, Module, Parameter

Layouts = Placement | tuple[Placement | None, ...] | None

__all__ = [
    "ColwiseParallel",
    "ParallelStyle",
    "PrepareModuleInput",
    "PrepareModuleInputOutput",
    "PrepareModuleOutput",
    "RowwiseParallel",
    "SequenceParallel",
]


class ParallelStyle(Shown, ABC):
    """How a module is spread over a mesh; a subclass says it in _apply(module, device_mesh)."""

    src_data_rank: int | None = 0

    @abstractmethod
    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module: ...


def _brought(value: Any, mesh: DeviceMesh, layout: Placement, wanted: Placement | None) -> DTensor:
    """A part that lies in `layout`, or a DTensor, in the layout that is wanted."""
    if not isinstance(value, DTensor):
        if not isinstance(value, Tensor):
            raise ValueError(f"expecting a torch.Tensor or DTensor, but got {value!r}")
        value = DTensor.from_local(value, mesh, (layout,))
    wanted = layout if wanted is None else wanted
    return value.redistribute(placements=(wanted,))


class _LinearStyle(ParallelStyle):
    """What ColwiseParallel and RowwiseParallel have in common."""

    _shown = ("input_layouts", "output_layouts", "use_local_output")
    # For each class of modules: how each parameter lies, and what the input must be.
    _layouts: ClassVar[dict[type[Module], tuple[dict[str, Placement], Placement]]]

    def __init__(
        self, input_layouts: Placement, output_layouts: Placement, use_local_output: bool
    ) -> None:
        self.input_layouts = (input_layouts,)
        self.output_layouts = (output_layouts,)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        kind = next((kind for kind in self._layouts if isinstance(module, kind)), None)
        if kind is None:
            raise NotImplementedError(
                f"{type(self).__name__} currently only support nn.Linear and nn.Embedding!"
            )
        parameters, wanted = self._layouts[kind]

        def partition(name: str, submodule: Module, mesh: DeviceMesh) -> None:
            for key, param in list(submodule.named_parameters(recurse=False)):
                made = distribute_tensor(
                    param, mesh, [parameters[key]], src_data_rank=self.src_data_rank
                )
                submodule.register_parameter(key, Parameter(made, param.requires_grad))

        def before(module: Module, inputs: Any, mesh: DeviceMesh) -> Any:
            return _brought(inputs[0], mesh, self.input_layouts[0], wanted), *inputs[1:]

        def after(module: Module, outputs: Any, mesh: DeviceMesh) -> Any:
            outputs = outputs.redistribute(placements=self.output_layouts)
            return outputs.to_local() if self.use_local_output else outputs

        return distribute_module(module, device_mesh, partition, before, after)


class ColwiseParallel(_LinearStyle):
    """Each rank computes some of the output features of a Linear or an Embedding.

    Args:
        input_layouts: how the input lies if it is a plain tensor; Replicate() by default.
        output_layouts: how the output is to lie; Shard(-1) by default.
        use_local_output: whether the output is this rank's part, as a plain tensor.
    """

    _layouts: ClassVar = {
        Linear: ({"weight": Shard(0), "bias": Shard(0)}, Replicate()),
        Embedding: ({"weight": Shard(1)}, Replicate()),
    }

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(
            input_layouts or Replicate(), output_layouts or Shard(-1), use_local_output
        )


class RowwiseParallel(_LinearStyle):
    """Each rank has some of the input features of a Linear, or some of the rows of an Embedding.

    Args:
        input_layouts: how the input lies if it is a plain tensor; Shard(-1) by default.
        output_layouts: how the output is to lie; Replicate() by default.
        use_local_output: whether the output is this rank's part, as a plain tensor.
    """

    _layouts: ClassVar = {
        Linear: ({"weight": Shard(1), "bias": Replicate()}, Shard(-1)),
        Embedding: ({"weight": Shard(0)}, Replicate()),
    }

    def __init__(
        self,
        *,
        input_layouts: Placement | None = None,
        output_layouts: Placement | None = None,
        use_local_output: bool = True,
    ) -> None:
        super().__init__(
            input_layouts or Shard(-1), output_layouts or Replicate(), use_local_output
        )


class SequenceParallel(ParallelStyle):
    """Each rank computes some positions of a sequence, with all of the module's parameters.

    For modules that see each position by itself, such as LayerNorm and RMSNorm. The parameters must
    be the same on all ranks.

    Args:
        sequence_dim: the dim of the positions.
        use_local_output: whether the output is this rank's part, as a plain tensor.
    """

    _shown = ("sequence_sharding", "use_local_output")

    def __init__(self, *, sequence_dim: int = 1, use_local_output: bool = False) -> None:
        self.sequence_sharding = (Shard(sequence_dim),)
        self.use_local_output = use_local_output

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        (sharding,) = self.sequence_sharding

        def before(module: Module, inputs: Any, mesh: DeviceMesh) -> Any:
            return _brought(inputs[0], mesh, sharding, sharding), *inputs[1:]

        def after(module: Module, outputs: Any, mesh: DeviceMesh) -> Any:
            return outputs.to_local() if self.use_local_output else outputs

        def replicate(name: str, submodule: Module, mesh: DeviceMesh) -> None:
            for key, param in list(submodule.named_parameters(recurse=False)):
                made = DTensor.from_local(param.detach(), mesh, [Replicate()])
                submodule.register_parameter(key, Parameter(made, param.requires_grad))

        return distribute_module(module, device_mesh, replicate, before, after)


def _tuple(layouts: Any) -> Any:
    return (layouts,) if isinstance(layouts, Placement) else layouts


class PrepareModuleInput(ParallelStyle):
    """Makes the inputs of a module DTensors in the layouts that it needs.

    Args:
        input_layouts: how each input lies if it is a plain tensor; None for those to leave alone.
        desired_input_layouts: how each is to lie.
        input_kwarg_layouts, desired_input_kwarg_layouts: the same for keyword arguments.
        use_local_output: whether the module gets this rank's parts, as plain tensors.

    Raises:
        AssertionError: if there are not as many desired layouts as layouts.
    """

    _shown = (
        "input_layouts",
        "desired_input_layouts",
        "input_kwarg_layouts",
        "desired_input_kwarg_layouts",
        "use_local_output",
    )

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_output: bool = False,
    ) -> None:
        self.input_layouts = _tuple(input_layouts)
        self.desired_input_layouts = _tuple(desired_input_layouts)
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        self.use_local_output = use_local_output
        for name in ("input_layouts", "input_kwarg_layouts"):
            count = len(getattr(self, name) or ())
            if count and count != len(getattr(self, f"desired_{name}") or ()):
                raise AssertionError(f"{name} and desired_{name} should have same length!")

    def _prepared(self, value: Any, mesh: DeviceMesh, layout: Any, wanted: Any) -> Any:
        if layout is None:
            return value
        brought = _brought(value, mesh, layout, wanted)
        return brought.to_local() if self.use_local_output else brought

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def before(module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
            if self.input_layouts is not None:
                args = _prepared_all(
                    "inputs",
                    args,
                    self.input_layouts,
                    self.desired_input_layouts,
                    lambda *three: self._prepared(three[0], device_mesh, *three[1:]),
                )
            layouts, wanted = self.input_kwarg_layouts, self.desired_input_kwarg_layouts
            return args, {
                name: self._prepared(value, device_mesh, layouts.get(name), wanted.get(name))
                for name, value in kwargs.items()
            }

        module.register_forward_pre_hook(before, with_kwargs=True)
        return module


class PrepareModuleOutput(ParallelStyle):
    """Makes the outputs of a module DTensors in the layouts that follow-ups need.

    Args:
        output_layouts: how each output lies if it is a plain tensor; None for those to leave alone.
        desired_output_layouts: how each is to lie.
        use_local_output: whether the outputs are this rank's parts, as plain tensors.

    Raises:
        AssertionError: if there are not as many desired layouts as layouts.
    """

    _shown = ("output_layouts", "desired_output_layouts", "use_local_output")

    def __init__(
        self,
        *,
        output_layouts: Placement | tuple[Placement | None, ...],
        desired_output_layouts: Placement | tuple[Placement, ...],
        use_local_output: bool = True,
    ) -> None:
        self.output_layouts = _tuple(output_layouts)
        self.desired_output_layouts = _tuple(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError(
                "output_layouts and desired_output_layouts should have same length!"
            )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        def prepared(value: Any, layout: Placement | None, wanted: Placement) -> Any:
            if layout is None:
                return value
            brought = _brought(value, device_mesh, layout, wanted)
            return brought.to_local() if self.use_local_output else brought

        def after(module: Module, inputs: Any, outputs: Any) -> Any:
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            layouts, wanted = self.output_layouts, self.desired_output_layouts
            results = _prepared_all("outputs", outputs, layouts, wanted, prepared)
            return results[0] if len(results) == 1 else results

        module.register_forward_hook(after)
        return module


def _prepared_all(
    name: str, values: Sequence[Any], layouts: Any, wanted: Any, prepare: Any
) -> tuple[Any, ...]:
    if len(values) != len(layouts):
        raise ValueError(
            f"module {name} and {name[:-1]}_layouts should have same length! Found {len(values)} "
            f"and {len(layouts)}."
        )
    return tuple(prepare(*three) for three in zip(values, layouts, wanted, strict=True))


class PrepareModuleInputOutput(ParallelStyle):
    """PrepareModuleInput and PrepareModuleOutput together.

    Args:
        input_layouts, desired_input_layouts, input_kwarg_layouts, desired_input_kwarg_layouts: see
            PrepareModuleInput.
        use_local_input: whether the module gets this rank's parts, as plain tensors.
        output_layouts, desired_output_layouts, use_local_output: see PrepareModuleOutput.
    """

    _shown = ("prepare_module_input", "prepare_module_output")

    def __init__(
        self,
        *,
        input_layouts: Layouts = None,
        desired_input_layouts: Layouts = None,
        input_kwarg_layouts: dict[str, Placement] | None = None,
        desired_input_kwarg_layouts: dict[str, Placement] | None = None,
        use_local_input: bool = False,
        output_layouts: Placement | tuple[Placement | None, ...],
        desired_output_layouts: Placement | tuple[Placement, ...],
        use_local_output: bool = True,
    ) -> None:
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts,
            desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts,
            desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts,
            desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )

    def _apply(self, module: Module, device_mesh: DeviceMesh) -> Module:
        self.prepare_module_input._apply(module, device_mesh)
        return self.prepare_module_output._apply(module, device_mesh)
