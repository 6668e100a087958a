"""SummaryWriter, which is that of the tensorboardX package with tensors for arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from rushlight import _C, Tensor, nn
from rushlight.utils._pytree import tree_map

try:
    import tensorboardX
except ImportError:
    raise ImportError(
        "utils.tensorboard: needs the package tensorboardX. Install it: pip install tensorboardX"
    ) from None


__all__ = ["SummaryWriter"]


class SummaryWriter(tensorboardX.SummaryWriter):
    """Writes what TensorBoard shows: curves, histograms, pictures, texts.

    It is tensorboardX's, with the arguments of PyTorch's; tensors are taken wherever it takes
    arrays.

    Example:
        >>> import os, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with SummaryWriter(folder) as writer:
        ...         for step in range(3):
        ...             writer.add_scalar("loss", torch.tensor(1 / (step + 1)), step)
        ...     len(os.listdir(folder))
        1
    """

    def add_scalar(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        tag: str,
        scalar_value: Any,
        global_step: int | None = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
        **options: Any,
    ) -> None:
        """Writes a number, a point of a curve.

        Args:
            tag: the curve.
            scalar_value: the number.
            global_step: where the point is.
            walltime: its time; now if None.
            new_style, double_precision: have no effect; it is written as 32 bits, in the old style.
            options: what tensorboardX takes besides.
        """
        super().add_scalar(tag, _as_array(scalar_value), global_step, walltime, **options)

    def add_hparams(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: int | None = None,
        name: str | None = None,
    ) -> None:
        """Writes hyperparameters, and what came of them.

        Args:
            hparam_dict: the hyperparameters.
            metric_dict: the results.
            hparam_domain_discrete: has no effect.
            run_name: folder of the run; the time if None.
            global_step: of the results.
            name: the same as run_name, as tensorboardX calls it.
        """
        hparams, metrics = tree_map(_as_number, (hparam_dict, metric_dict))
        super().add_hparams(hparams, metrics, run_name or name, global_step)

    def add_tensor(
        self,
        tag: str,
        tensor: Tensor,
        global_step: int | None = None,
        walltime: float | None = None,
    ) -> None:
        """Writes the elements of a tensor.

        Args:
            tag: its name.
            tensor: the tensor; bfloat16 is written as float32.
            global_step: when it was so.
            walltime: the time; now if None.
        """
        from rushlight.utils.tensorboard.summary import tensor_proto

        writer = self._get_file_writer()
        if writer is not None:
            writer.add_summary(tensor_proto(tag, tensor), global_step, walltime)

    def add_graph(
        self,
        model: nn.Module,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """Writes the ops that a module calls, in groups by the modules whose parameters they use.

        Args:
            model: what is drawn; it runs once.
            input_to_model: an example of its inputs: a tensor, or a tuple of all of them.
            verbose: whether to print the graph, too.
            use_strict_trace: accepted.
        """
        from tensorboardX.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]

        from rushlight.utils.tensorboard._graph import graph_of

        graph = graph_of(model, input_to_model)
        if verbose:
            print(graph)
        writer = self._get_file_writer()
        if writer is not None:
            writer.add_event(Event(graph_def=graph.SerializeToString()))


def _with_arrays(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method on arrays where it is given tensors."""

    @functools.wraps(method)
    def call(self: SummaryWriter, *args: Any, **kwargs: Any) -> Any:
        return method(self, *tree_map(_as_array, args), **tree_map(_as_array, kwargs))

    return call


def _as_array(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    if value.dtype is _C.bfloat16:  # which NumPy does not have
        value = value.float()
    return value.detach().cpu().numpy()


def _as_number(value: Any) -> Any:
    return value.item() if isinstance(value, Tensor) else value


for _name in dir(tensorboardX.SummaryWriter):
    if _name.startswith("add_") and _name not in vars(SummaryWriter):
        setattr(SummaryWriter, _name, _with_arrays(getattr(tensorboardX.SummaryWriter, _name)))
