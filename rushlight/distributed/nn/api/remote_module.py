"""RemoteModule: a module that stays in another process and is called from this one."""

from __future__ import annotations

from typing import Any, NoReturn

from rushlight import nn
from rushlight.distributed import rpc
from rushlight.futures import Future

__all__ = ["RemoteModule"]

_REFUSED = (
    "add_module",
    "apply",
    "bfloat16",
    "buffers",
    "children",
    "cpu",
    "cuda",
    "double",
    "float",
    "half",
    "load_state_dict",
    "modules",
    "named_buffers",
    "named_children",
    "named_modules",
    "named_parameters",
    "parameters",
    "register_backward_hook",
    "register_buffer",
    "register_forward_hook",
    "register_forward_pre_hook",
    "register_parameter",
    "requires_grad_",
    "share_memory",
    "state_dict",
    "to",
    "type",
    "zero_grad",
)


def _make(
    kind: type[nn.Module], args: tuple[Any, ...], kwargs: dict[str, Any], device: str
) -> nn.Module:
    return kind(*args, **kwargs).to(device)


def _references(module: rpc.RRef, recurse: bool) -> list[rpc.RRef]:
    return [rpc.RRef(parameter) for parameter in module.local_value().parameters(recurse)]


def _train(module: rpc.RRef, mode: bool) -> None:
    module.local_value().train(mode)


class RemoteModule(nn.Module):
    """A module of another process. A call of it is a remote call.

    In a context of distributed.autograd gradients flow through it. It can be sent in calls; then
    both processes call the same module.

    Args:
        remote_device: the process and the device there: "worker1/cpu", "rank:1/cuda:0", "worker1".
        module_cls: the class of the module.
        args, kwargs: for its constructor.

    Raises:
        ValueError: for another remote_device, or a class of something else.
        Exception: what the constructor raised.

    Example:
        >>> from rushlight.distributed import rpc
        >>> from rushlight.distributed.nn import RemoteModule
        >>> import tempfile
        >>> options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mktemp()}")
        >>> rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> layer = RemoteModule("alone/cpu", torch.nn.Linear, args=(4, 2))
        >>> layer(torch.ones(3, 4)).shape
        torch.Size([3, 2])
        >>> len(layer.remote_parameters())
        2
        >>> rpc.shutdown()
    """

    def __init__(
        self,
        remote_device: str,
        module_cls: type[nn.Module],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(module_cls, type) or not issubclass(module_cls, nn.Module):
            raise ValueError(f"RemoteModule: module_cls is {module_cls!r}, no class of modules.")
        to, device = _parsed(remote_device)
        call = (module_cls, args or (), kwargs or {}, device)
        self._module = rpc.remote(to, _make, call)
        self._module.rpc_sync()._get_name()  # raises what the constructor raised

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the module, and returns its result."""
        return self.forward_async(*args, **kwargs).wait()

    def forward_async(self, *args: Any, **kwargs: Any) -> Future[Any]:
        """Begins a call of the module, and returns its future."""
        return self._module.rpc_async().__call__(*args, **kwargs)

    def remote_parameters(self, recurse: bool = True) -> list[rpc.RRef]:
        """Returns references to the module's parameters, for DistributedOptimizer."""
        return rpc.rpc_sync(self._module.owner(), _references, (self._module, recurse))

    def get_module_rref(self) -> rpc.RRef:
        """Returns the reference to the module."""
        return self._module

    def train(self, mode: bool = True) -> Any:
        """Sets the mode of the module."""
        self.training = mode
        rpc.rpc_sync(self._module.owner(), _train, (self._module, mode))
        return self

    def extra_repr(self) -> str:
        """The process, for repr."""
        return f"of {self._module.owner_name()}"


def _parsed(remote_device: str) -> tuple[str | int, str]:
    to, _, device = remote_device.partition("/")
    if to.startswith("rank:"):
        if not to[5:].isdigit():
            raise ValueError(f"RemoteModule: {remote_device!r} has no number after 'rank:'.")
        return int(to[5:]), device or "cpu"
    if not to:
        raise ValueError(f"RemoteModule: {remote_device!r} names no process, as worker1/cpu does.")
    return to, device or "cpu"


def _refused(name: str) -> Any:
    def method(self: RemoteModule, *args: Any, **kwargs: Any) -> NoReturn:
        raise ValueError(
            f"{name}: a RemoteModule has no parameters in this process. Use remote_parameters(), "
            "or get_module_rref() to call methods there."
        )

    return method


for _name in _REFUSED:
    setattr(RemoteModule, _name, _refused(_name))
