"""Backward through remote calls: a tape that goes on in other processes.

Inside a context, tensors that calls take to another process and back keep their history, and
backward follows it there. Gradients do not go to `.grad` but into the context, so that several
contexts can use the same parameters at the same time; distributed.optim.DistributedOptimizer makes
steps with them.
"""

from __future__ import annotations

from collections.abc import Sequence

from rushlight import Tensor
from rushlight.distributed.rpc._pickling import thread
from rushlight.distributed.rpc._tape import context_of, end_context, new_context

__all__ = ["backward", "context", "get_gradients", "is_available"]


def is_available() -> bool:
    """Returns True."""
    return True


class context:
    """A with block whose remote calls keep the history of tensors. Gives the context's number.

    It ends in all processes with the block, and its tape and gradients with it.

    Raises:
        RuntimeError: inside another context, or before rpc.init_rpc.

    Example:
        >>> from rushlight.distributed import autograd, rpc
        >>> import tempfile
        >>> options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{tempfile.mktemp()}")
        >>> rpc.init_rpc("alone", rank=0, world_size=1, rpc_backend_options=options)
        >>> x = torch.ones(2, requires_grad=True)
        >>> with autograd.context() as number:
        ...     y = rpc.rpc_sync("alone", torch.mul, args=(x, 3))
        ...     autograd.backward(number, [y.sum()])
        ...     autograd.get_gradients(number)[x]
        tensor([3., 3.])
        >>> rpc.shutdown()
    """

    def __enter__(self) -> int:
        if thread.tape is not None:
            raise RuntimeError("context: this thread is in another one. They do not nest.")
        made = new_context()
        thread.tape, self._number = made, made.number
        return self._number

    def __exit__(self, *error: object) -> None:
        thread.tape = None
        end_context(self._number)


def backward(context_id: int, roots: Sequence[Tensor], retain_graph: bool = False) -> None:
    """Computes the gradients of the roots by the leaves of all processes, and adds them to those of
    the context.

    Args:
        context_id: what `context` gives.
        roots: tensors of this process with one element each, which require a gradient.
        retain_graph: whether backward shall be possible again.

    Raises:
        RuntimeError: for other roots, if there is no such context, or if it fails in another
            process.
        DistNetworkError: if a process has ended.
    """
    known = context_of(context_id)
    roots = list(roots)
    if not roots:
        raise RuntimeError("No tensors provided for gradient computation.")
    for root in roots:
        if not isinstance(root, Tensor):
            raise TypeError(f"backward: roots hold {type(root).__name__}. They are tensors.")
        if not root.requires_grad:
            raise RuntimeError("requires_grad not set on root. Compute it from what requires one.")
        if root.numel() != 1:
            raise RuntimeError(
                f"backward: a root of shape {tuple(root.shape)} is not a scalar, all roots need to "
                "be scalar."
            )
    known.walk(roots, retain_graph)


def get_gradients(context_id: int) -> dict[Tensor, Tensor]:
    """Returns the gradients of this process's leaves, by leaf.

    Raises:
        RuntimeError: if there is no such context.
    """
    return dict(context_of(context_id).grads)
