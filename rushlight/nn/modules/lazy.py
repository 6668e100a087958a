"""Modules whose parameters get their shapes from the first input.

Owns the mechanism: a hook before forward and one before loading, which take themselves out once
all shapes are known. The layers are in _lazy_layers.py.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import rushlight as rl
from rushlight.nn.modules.module import Module
from rushlight.nn.parameter import is_lazy
from rushlight.utils.hooks import RemovableHandle

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin(Module):
    """What modules share that learn shapes from the first input they see.

    A subclass assigns UninitializedParameter and UninitializedBuffer members, and defines
    initialize_parameters, which materializes them and is given the arguments of the first forward.
    Afterwards the module gets the class cls_to_become, unless that is None.

    Example:
        >>> class Scale(torch.nn.modules.lazy.LazyModuleMixin, torch.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factors = torch.nn.UninitializedParameter()
        ...     def initialize_parameters(self, x):
        ...         self.factors.materialize(x.shape[-1:])
        ...         torch.nn.init.ones_(self.factors)
        ...     def forward(self, x):
        ...         return x * self.factors
        >>> tuple(Scale()(torch.zeros(5, 2)).shape)
        (5, 2)
    """

    cls_to_become: type[Module] | None = None
    _load_hook: RemovableHandle
    _initialize_hook: RemovableHandle

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self.register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materializes and fills the parameters; override it.

        Args:
            args: the arguments of the first forward.
            kwargs: its keyword arguments.
        """
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Returns whether a parameter or buffer of this module has no shape yet.

        Example:
            >>> torch.nn.LazyLinear(3).has_uninitialized_params()
            True
        """
        return any(map(is_lazy, (*self._parameters.values(), *self._buffers.values())))

    def _infer_parameters(
        self, module: LazyModuleMixin, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {module._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            become: Any = module.cls_to_become
            module.__class__ = become

    def _lazy_load_hook(
        self, module: Module, state_dict: dict[str, Any], prefix: str, *_: Any
    ) -> None:
        """Gives what has no shape yet that of the tensor it is about to be loaded from."""
        for name, tensor in module._saved_members():
            value = state_dict.get(prefix + name)
            if is_lazy(tensor) and isinstance(value, rl.Tensor) and not is_lazy(value):
                with rl.no_grad():
                    tensor.materialize(value.shape)

    def _save_to_state_dict(
        self, destination: OrderedDict[str, Any], prefix: str, keep_vars: bool
    ) -> None:
        lazy = {n: t for n, t in self._saved_members() if is_lazy(t)}
        if not lazy:
            super()._save_to_state_dict(destination, prefix, keep_vars)
            return
        # In the order of the members, of which those without a shape cannot be detached.
        for name, tensor in self._saved_members():
            if tensor is not None:
                is_kept = keep_vars or name in lazy
                destination[prefix + name] = tensor if is_kept else tensor.detach()
