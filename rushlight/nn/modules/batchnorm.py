"""Normalization over the batch, with running statistics for evaluation."""

from __future__ import annotations

import sys
from typing import Any

import rushlight as rl
from rushlight import Tensor, _later
from rushlight.nn import functional as F
from rushlight.nn import init
from rushlight.nn.modules.module import Module
from rushlight.nn.modules.utils import check_sizes
from rushlight.nn.parameter import Parameter

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"]


class _NormBase(Module):
    """What batch and instance norms share: affine parameters and running statistics."""

    _version = 2  # version 1 had no num_batches_tracked
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        check_sizes(self, num_features=num_features)
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        factory: Any = {"device": device, "dtype": dtype}
        for name, wanted in (("weight", affine), ("bias", affine and bias)):
            parameter = Parameter(rl.empty((num_features,), **factory)) if wanted else None
            self.register_parameter(name, parameter)
        if track_running_stats:
            self.register_buffer("running_mean", rl.zeros((num_features,), **factory))
            self.register_buffer("running_var", rl.ones((num_features,), **factory))
            count = rl.tensor(0, dtype=rl.int64, device=device)
            self.register_buffer("num_batches_tracked", count)
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Sets the running mean to 0, the variance to 1 and the number of batches to 0."""
        for buffer, value in (
            (self.running_mean, 0),
            (self.running_var, 1),
            (self.num_batches_tracked, 0),
        ):
            if buffer is not None:
                buffer.fill_(value)

    def reset_parameters(self) -> None:
        """Resets the running statistics, and sets weight to 1 and bias to 0."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        key = prefix + "num_batches_tracked"
        is_old = local_metadata.get("version", 1) < 2
        if is_old and self.num_batches_tracked is not None and key not in state_dict:
            own = self.num_batches_tracked
            state_dict[key] = own if own.device.type != "meta" else rl.tensor(0, dtype=rl.int64)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class _BatchNorm(_NormBase):
    """What batch norms share: the update of the running statistics.

    In training, running = (1 - momentum) * running + momentum * batch statistic, with the unbiased
    variance; momentum None makes the running values plain means over all batches.
    """

    _dims: tuple[int, ...]  # numbers of input dimensions that forward takes

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._dims:
            raise ValueError(
                f"{type(self).__name__}: expected {'D or '.join(map(str, self._dims))}D input "
                f"(got {input.dim()}D input). Dimension 1 holds the channels."
            )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        mean, var, momentum = self.running_mean, self.running_var, self.momentum
        if self.training and not self.track_running_stats:
            mean = var = None
        if self.training and mean is not None and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if momentum is None:
                momentum = 1.0 / self.num_batches_tracked.item()
        return self._normalize(input, mean, var, 0.0 if momentum is None else momentum)

    def _normalize(
        self, input: Tensor, mean: Tensor | None, var: Tensor | None, momentum: float
    ) -> Tensor:
        """Normalizes by the batch in training or without running statistics, else by these."""
        uses_batch = self.training or mean is None
        return F.batch_norm(
            input, mean, var, self.weight, self.bias, uses_batch, momentum, self.eps
        )


class BatchNorm1d(_BatchNorm):
    """Normalizes each channel of vectors or sequences over the batch (Ioffe and Szegedy 2015).

    y = (x - mean) / sqrt(var + eps) * weight + bias, with mean and (biased) variance of the batch
    in training, and the running ones in evaluation.

    Args:
        num_features: number of channels C.
        eps: added to the variance.
        momentum: weight of a new batch in the running statistics; None for a plain mean.
        affine: whether weight and bias are learned.
        track_running_stats: whether to keep running statistics; without them evaluation uses the
            batch as well.
        device: where to put the parameters.
        dtype: their dtype.
        bias: whether affine includes a bias.

    Shape:
        (N, C) or (N, C, L), unchanged.

    Raises:
        ValueError: if the input has another number of dimensions.

    Example:
        >>> y = torch.nn.BatchNorm1d(1)(torch.tensor([[1.0], [3.0]]))
        >>> y.round(decimals=3).tolist()
        [[-1.0], [1.0]]
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalizes each channel of images over the batch (Ioffe and Szegedy 2015).

    y = (x - mean) / sqrt(var + eps) * weight + bias, with mean and (biased) variance of the batch
    in training, and the running ones in evaluation.

    Args:
        num_features: number of channels C; the other arguments are those of BatchNorm1d.

    Shape:
        (N, C, H, W), unchanged.

    Raises:
        ValueError: if the input has another number of dimensions.

    Example:
        >>> y = torch.nn.BatchNorm2d(1)(torch.tensor([[[[1.0, 3.0]]]]))
        >>> y.round(decimals=3).tolist()
        [[[[-1.0, 1.0]]]]
    """

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalizes each channel of volumes over the batch (Ioffe and Szegedy 2015).

    y = (x - mean) / sqrt(var + eps) * weight + bias, with mean and (biased) variance of the batch
    in training, and the running ones in evaluation.

    Args:
        num_features: number of channels C; the other arguments are those of BatchNorm1d.

    Shape:
        (N, C, D, H, W), unchanged.

    Raises:
        ValueError: if the input has another number of dimensions.

    Example:
        >>> y = torch.nn.BatchNorm3d(1)(torch.tensor([[[[[1.0, 3.0]]]]]))
        >>> y.round(decimals=3).tolist()
        [[[[[-1.0, 1.0]]]]]
    """

    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Normalizes each channel over the batches of all processes together.

    In training its results and gradients are those of one process with the joined batch. In
    evaluation, and without a process group, it is BatchNorm1d to BatchNorm3d. It works on the CPU
    too; its gradient cannot be differentiated again.

    Args:
        num_features: number of channels C; the other arguments are those of BatchNorm1d.
        process_group: the processes that share statistics; all of them if None.

    Shape:
        (N, C, *), unchanged; N may differ between processes, and be 0 in some.

    Raises:
        ValueError: if the input has fewer than 2 dimensions, or no channels; in training, if all
            processes together have a single value for a channel.

    Example:
        >>> y = torch.nn.SyncBatchNorm(1)(torch.tensor([[1.0], [3.0]]))
        >>> y.round(decimals=3).tolist()
        [[-1.0], [1.0]]
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: rl.device | str | None = None,
        dtype: rl.dtype | None = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(
                f"SyncBatchNorm: expected at least 2D input (got {input.dim()}D input)"
            )
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def _normalize(
        self, input: Tensor, mean: Tensor | None, var: Tensor | None, momentum: float
    ) -> Tensor:
        # Without this module there is no process group yet.
        dist = sys.modules.get("rushlight.distributed")
        if not self.training or dist is None or not dist.is_initialized():
            return super()._normalize(input, mean, var, momentum)
        if dist.get_world_size(self.process_group) < 2:
            return super()._normalize(input, mean, var, momentum)
        from rushlight.nn.modules._sync_batchnorm import SyncedBatchNorm, joint_statistics

        joint_mean, joint_var, count = joint_statistics(input, self.process_group)
        if count == 1:
            raise ValueError(
                "Expected more than 1 value per channel when training, got input size "
                f"{tuple(input.shape)} and no values in the other processes"
            )
        if mean is not None and var is not None and count:
            with rl.no_grad():
                mean.lerp_(joint_mean.to(mean.dtype), momentum)
                var.lerp_((joint_var * (count / (count - 1))).to(var.dtype), momentum)
        return SyncedBatchNorm.apply(
            input,
            self.weight,
            self.bias,
            joint_mean,
            joint_var,
            count,
            self.eps,
            self.process_group,
        )

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Returns the module with all its batch norms replaced by ones that synchronize.

        Args:
            module: a batch norm, of which a new layer is made, or what contains some, in which they
                are replaced. Parameters and running statistics stay the same tensors.
            process_group: the processes that share statistics; all of them if None.

        Example:
            >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
            >>> type(torch.nn.SyncBatchNorm.convert_sync_batchnorm(net)[1]).__name__
            'SyncBatchNorm'
        """
        result = module
        if isinstance(module, _BatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            result.weight, result.bias = module.weight, module.bias
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(result, name, getattr(module, name))
            result.training = module.training
            if hasattr(module, "qconfig"):  # how it is to be quantized
                result.qconfig = module.qconfig
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


# PyTorch has these here.
__getattr__ = _later.imports(
    __name__,
    names_in={
        "_lazy_layers": "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d",
    },
    package="rushlight.nn.modules",
)
