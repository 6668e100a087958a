"""AdaptiveLogSoftmaxWithLoss: log-softmax over very many classes, the rare ones in clusters."""

from __future__ import annotations

import itertools
from collections import namedtuple
from collections.abc import Sequence

import rushlight as rl
from rushlight import Tensor
from rushlight import device as Device
from rushlight import dtype as DType
from rushlight.nn import functional as F
from rushlight.nn.modules.container import ModuleList, Sequential
from rushlight.nn.modules.linear import Linear
from rushlight.nn.modules.module import Module

__all__ = ["AdaptiveLogSoftmaxWithLoss"]

_ASMoutput = namedtuple("_ASMoutput", ["output", "loss"])


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log-probability of a target among very many classes (Grave et al. 2017).

    Classes are sorted, frequent ones first, and cut into clusters. The head gives the probabilities
    of the classes of the first one and of the other clusters as a whole; these have a small network
    each, of in_features // div_value**i features, which runs for the targets inside it only.

    Args:
        in_features: size of each input sample.
        n_classes: number of classes.
        cutoffs: where clusters begin: increasing numbers between 1 and n_classes - 1.
        div_value: how many times fewer features each cluster has than the one before.
        head_bias: whether the head has a bias.
        device: where the parameters are made.
        dtype: dtype of the parameters.

    Shape:
        input (N, in_features) with target (N), or (in_features) with (); the result is a named
        tuple of output, the log-probabilities of the targets, and loss, minus their mean.

    Raises:
        ValueError: if cutoffs are not such numbers.

    Example:
        >>> m = torch.nn.AdaptiveLogSoftmaxWithLoss(16, 1000, cutoffs=[10, 100])
        >>> output, loss = m(torch.randn(4, 16), torch.tensor([3, 50, 999, 0]))
        >>> output.shape, loss.shape
        (torch.Size([4]), torch.Size([]))
    """

    head: Linear
    tail: ModuleList

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        increases = all(a < b for a, b in itertools.pairwise(cutoffs))
        inside = all(0 < c < n_classes and int(c) == c for c in cutoffs)
        if not (increases and inside):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing "
                f"order, where each value is between 1 and n_classes-1; got {cutoffs} for "
                f"{n_classes} classes"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, head_bias, device, dtype)
        self.tail = ModuleList()
        for i in range(self.n_clusters):
            features = int(in_features // div_value ** (i + 1))
            classes = self.cutoffs[i + 1] - self.cutoffs[i]
            self.tail.append(
                Sequential(
                    Linear(in_features, features, False, device, dtype),
                    Linear(features, classes, False, device, dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draws all weights anew."""
        for module in self.modules():
            if isinstance(module, Linear):
                module.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        _check(input_, target_)
        batched = target_.dim() == 1
        input = input_ if batched else input_.unsqueeze(0)
        target = target_ if batched else target_.unsqueeze(0)
        self._check_classes(target)
        output = input.new_zeros(target.shape[0])
        in_head = target  # what each target is in the head's view
        for i in range(self.n_clusters):
            low, high = self.cutoffs[i], self.cutoffs[i + 1]
            rows = ((target >= low) & (target < high)).nonzero().squeeze(1)
            if rows.numel() == 0:
                continue
            log_probs = F.log_softmax(self.tail[i](input.index_select(0, rows)), dim=1)
            own = log_probs.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1)
            output = output.index_copy(0, rows, own)
            in_head = in_head.index_fill(0, rows, self.shortlist_size + i)
        head = F.log_softmax(self.head(input), dim=1)
        output = output + head.gather(1, in_head.unsqueeze(1)).squeeze(1)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _check_classes(self, target: Tensor) -> None:
        if target.numel() == 0 or target.is_meta:
            return
        low, high = target.min().item(), target.max().item()
        if low < 0 or high >= self.n_classes:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{low}, {high}] were found. "
            )

    def _clusters(self, input: Tensor, head: Tensor) -> Tensor:
        """The log-probabilities of all classes, given those of the head."""
        parts = [head[:, : self.shortlist_size]]
        for i, cluster in enumerate(self.tail):
            whole = head[:, self.shortlist_size + i].unsqueeze(1)
            parts.append(F.log_softmax(cluster(input), dim=1) + whole)
        return rl.cat(parts, 1)

    def log_prob(self, input: Tensor) -> Tensor:
        """Returns the log-probabilities of all classes.

        Args:
            input: (N, in_features).

        Returns:
            (N, n_classes).
        """
        return self._clusters(input, F.log_softmax(self.head(input), dim=1))

    def predict(self, input: Tensor) -> Tensor:
        """Returns the most probable class of each sample, as log_prob(input).argmax(1) would.

        The clusters run only for samples of which the head prefers one of them.

        Args:
            input: (N, in_features).

        Returns:
            classes, (N).
        """
        head = F.log_softmax(self.head(input), dim=1)
        best = head.argmax(dim=1)
        rows = (best >= self.shortlist_size).nonzero().squeeze(1)
        if rows.numel() == 0:
            return best
        inside = self._clusters(input.index_select(0, rows), head.index_select(0, rows))
        return best.index_copy(0, rows, inside.argmax(dim=1))


def _check(input: Tensor, target: Tensor) -> None:
    if target.dim() > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input.dim() != target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found "
            f"inputs with size {tuple(input.shape)}"
        )
    if target.dim() == 1 and input.shape[0] != target.shape[0]:
        raise RuntimeError("Input and target should have the same size in the batch dimension.")
