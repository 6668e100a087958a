"""Small programs for torch.onnx.export: a function and its inputs, by what they use."""

from collections.abc import Callable
from typing import Any

import rushlight as torch
import rushlight.nn.functional as F
from rushlight import Tensor

X = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0)) * 2 - 1
FLAT = X[:, :, 0]  # (2, 3, 8)
ROWS = X[0, 0]  # (8, 8)
POSITIVE = ROWS.abs() + 0.1
COUNTS = torch.arange(24).reshape(4, 6)
LABELS = torch.tensor([0, 2])
MASK = ROWS > 0

_UNARY = (
    "abs acos asin atan ceil cos cosh erf erfc exp exp2 expm1 floor frac neg reciprocal relu round "
    "sigmoid sign sin sinh square tan tanh trunc deg2rad rad2deg isnan isinf isfinite"
)
_POSITIVE = "log log10 log1p log2 rsqrt sqrt"
_ACTIVATIONS = (
    "celu elu gelu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu6 selu "
    "silu softplus softshrink softsign tanhshrink glu"
)
_COMPARISONS = "eq ne lt le gt ge"
_BINARY = "add sub mul div maximum minimum atan2 hypot logaddexp remainder floor_divide"


def _written(x: Tensor) -> Tensor:
    """Writes to views of views, which earlier and later views see."""
    y = x.clone()
    top = y[0]
    turned = top.transpose(0, 1)
    turned[1:3].mul_(2)
    y[:, 0, :2] = 7
    y[1, 1] += top[0]
    top.view(-1)[3::5] = -1
    y[:, -1].relu_()
    return torch.stack([y.sum(0), top + turned.transpose(0, 1)])


def _masked(x: Tensor) -> Tensor:
    y = x.clone()
    y[y > 0.5] = 0.5
    y[x[:, :, 0] < 0] = 1
    return y.fill_diagonal_(0) if y.dim() == 2 else y


def _constant_written(x: Tensor) -> Tensor:
    y = torch.tensor([1.0, 2.0, 3.0])
    y[0] = 5
    y[1:] += x[0, :2]
    return y * 2


def _filled(x: Tensor) -> Tensor:
    y = torch.zeros(3, x.shape[1])
    y[1:].copy_(x[:2])
    y[0] = x[0]
    y[:, 0].zero_()
    z = x.new_full((2, 2), 3.0)
    z.fill_(x.sum())
    return torch.cat([y.flatten(), z.flatten()])


def _indexed(x: Tensor) -> Any:
    i, j = torch.tensor([[0, 1], [1, 0]]), torch.tensor([2, -1])
    return (
        x[i], x[:, j], x[:, :, j, i], x[0, :, None, 1:5:2], x[..., -1], x[[0, 1], [2, 0]],
        x[i[0], ..., j], x[:, ::2, -3:], x[1][x[1] > 0], x[x[:, 0, 0, 0] < 9],
    )  # fmt: skip


def _compared(compare: Callable[..., Tensor]) -> Callable[..., Any]:
    return lambda a, b: (compare(a, b), compare(a, 0), compare(COUNTS, 3))


PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{name: (getattr(torch, name), (ROWS * 0.9,)) for name in _UNARY.split()},
    **{name: (getattr(torch, name), (POSITIVE,)) for name in _POSITIVE.split()},
    **{f"F.{name}": (getattr(F, name), (ROWS,)) for name in _ACTIVATIONS.split()},
    **{name: (getattr(torch, name), (ROWS, POSITIVE)) for name in _BINARY.split()},
    **{name: (_compared(getattr(torch, name)), (ROWS, ROWS.T)) for name in _COMPARISONS.split()},
    "acosh": (torch.acosh, (POSITIVE + 1,)),
    "gelu tanh": (lambda x: F.gelu(x, approximate="tanh"), (ROWS,)),
    "prelu": (F.prelu, (X, torch.tensor([0.1, 0.2, 0.3]))),
    "softmax": (lambda x: (x.softmax(-1), F.log_softmax(x, 1), F.softmin(x, 0)), (X,)),
    "numbers": (lambda x: (1 - x, 2 / x, 2**x, x**3, x // 0.3, x % 0.3, -x, x * True), (POSITIVE,)),
    "integers": (
        lambda x: (
            x + 1,
            x * 2.5,
            x // 3,
            x % 5,
            -x // 4,
            x / 2,
            x & 3,
            x | 8,
            x ^ 1,
            ~x,
            x.float(),
            x**2,
        ),
        (COUNTS,),
    ),
    "truth": (
        lambda m: (
            m & ~m,
            m | m.T,
            m ^ m.T,
            m.logical_not(),
            m + m,
            m.sum(),
            m.any(1),
            m.all(),
            m.int(),
        ),
        (MASK,),
    ),
    "dtypes": (
        lambda x: (x.double(), x.to(torch.int64), x.bool(), x.to(x), x.half().float()),
        (ROWS,),
    ),
    "mixed": (
        lambda x, n: (x + n[:, :1].float(), n + 1.5, n[0, 0] * x, torch.where(n > 3, n, 0.5)),
        (ROWS[:4], COUNTS),
    ),
    "clamp": (
        lambda x: (x.clamp(-0.5, 0.5), x.clamp(min=0), x.clamp_max(0.2), x.clip(max=0)),
        (ROWS,),
    ),
    "where": (
        lambda x, m: (torch.where(m, x, 0.0), x.masked_fill(m, -1e9), torch.where(m, 1, 0)),
        (ROWS, MASK),
    ),
    "lerp": (
        lambda x, y: (x.lerp(y, 0.3), torch.addcmul(x, x, y, value=2), torch.addcdiv(x, x, y)),
        (ROWS, POSITIVE),
    ),
    "logit": (
        lambda x: (torch.logit(x, 0.1), torch.xlogy(x, x), torch.nan_to_num(x / 0)),
        (POSITIVE / 2,),
    ),
    # reductions
    "sum": (
        lambda x: (
            x.sum(),
            x.sum(1),
            x.sum((0, -1), keepdim=True),
            x.mean(),
            x.mean([2, 3]),
            x.prod(1),
        ),
        (X,),
    ),
    "integer sums": (
        lambda n: (
            n.sum(),
            n.sum(1),
            n.prod(0),
            n.float().mean(),
            n.cumsum(1),
            n.max(),
            n.argmin(1),
        ),
        (COUNTS,),
    ),
    "max": (
        lambda x: (
            x.max(),
            x.max(1),
            x.min(-1, keepdim=True),
            x.amax((1, 2)),
            x.amin(0),
            x.argmax(),
            x.argmax(2),
        ),
        (X,),
    ),
    "moments": (
        lambda x: (
            x.var(),
            x.var(1),
            x.std((0, 2)),
            x.var(1, unbiased=False),
            torch.var_mean(x, 2, keepdim=True),
        ),
        (X,),
    ),
    "norms": (
        lambda x: (
            x.norm(),
            x.norm(dim=1),
            x.norm(1, 0),
            torch.linalg.vector_norm(x, 3, 1),
            F.normalize(x),
            torch.linalg.norm(x, dim=-1),
        ),
        (X,),
    ),
    "logsumexp": (lambda x: (x.logsumexp(1), x.cumsum(-1), torch.count_nonzero(x > 0, 1)), (X,)),
    "order": (
        lambda x: (
            x.topk(3),
            x.topk(2, 0, largest=False),
            x.sort(1, descending=True),
            x.argsort(),
            x.sort(),
        ),
        (ROWS,),
    ),
    # shapes
    "views": (
        lambda x: (
            x.view(2, -1),
            x.reshape(6, 64),
            x.flatten(1, 2),
            x.transpose(1, 3),
            x.permute(2, 0, 3, 1),
            x.unsqueeze(1),
            x[:1].squeeze(),
            x[:1].squeeze(0),
            x.movedim(1, -1),
            x.unflatten(1, (3, 1)),
            x[0, 0].t(),
            x.mT,
        ),
        (X,),
    ),
    "joins": (
        lambda x, y: (
            torch.cat([x, y], -1),
            torch.stack((x, y), 1),
            torch.hstack([x, y]),
            torch.vstack([x, y]),
        ),
        (ROWS, ROWS),
    ),
    "parts": (
        lambda x: (
            *x.chunk(3, 1),
            *x.split(3, 2),
            *x.split([1, 2], 1),
            *x.unbind(1),
            x.narrow(2, 1, 3),
            x.select(1, -1),
            *x.tensor_split(3, 3),
        ),
        (X,),
    ),
    "repeats": (
        lambda x: (
            x.repeat(2, 1, 3),
            x.tile(2),
            x.expand(4, 2, 3, 8)[1:],
            x.repeat_interleave(2, 1),
            x.flip(0, 2),
            x.roll(3, 2),
            x.roll((1, -2), (0, 2)),
            x.roll(5),
        ),
        (FLAT,),
    ),
    "shuffles": (
        lambda x: (
            F.pixel_shuffle(x.reshape(2, 12, 4, 4), 2),
            F.pixel_unshuffle(x, 2),
            F.channel_shuffle(x.reshape(2, 6, 4, 8), 3),
        ),
        (X,),
    ),
    "grids": (
        lambda x, y: (
            *torch.meshgrid(x, y, indexing="ij"),
            *torch.meshgrid(x, y, indexing="xy"),
            *torch.broadcast_tensors(x[:, None], y),
        ),
        (ROWS[0], ROWS[1, :5]),
    ),
    "triangles": (
        lambda x: (
            x.tril(),
            x.triu(1),
            torch.ones_like(x).tril(-1),
            (x > 0).triu(),
            x.diagonal(),
            x.diagonal(2),
        ),
        (ROWS,),
    ),
    "made": (
        lambda x: (
            torch.arange(x.shape[1]) + x,
            torch.linspace(0, 1, 8) * x,
            torch.eye(8) + x,
            x.new_ones(3),
            torch.full_like(x, 2),
            torch.zeros(2, 3),
        ),
        (ROWS,),
    ),
    "one_hot": (lambda n: F.one_hot(n, 5), (LABELS,)),
    # indices
    "indexed": (_indexed, (X,)),
    "gather": (
        lambda x, i: (
            x.gather(1, i),
            x[:, :5].gather(0, i[:2]),
            torch.take_along_dim(x, i, 1),
            x.index_select(0, i[0]),
            x.take(i),
        ),
        (ROWS, torch.tensor([[0, 3], [7, 1]] * 4)),
    ),
    "scatter": (
        lambda x, i, y: (
            x.scatter(1, i, y),
            x.scatter(1, i, 2.0),
            x.scatter_add(1, i, y),
            x.scatter_reduce(1, i, y, "amax"),
        ),
        (ROWS, torch.tensor([[0, 3], [7, 1]]), X[1, 0, :2, :2]),
    ),
    "index writes": (
        lambda x, i, y: (
            x.index_add(0, i, y),
            x.index_copy(1, i, y.T),
            x.index_fill(0, i, 3.0),
            x.index_put((i,), y),
            x.index_put((i, i), y[:, 0], accumulate=True),
        ),
        (ROWS, torch.tensor([4, 1]), X[1, 0, :2]),
    ),
    "embedding": (F.embedding, (torch.tensor([[1, 2], [0, 3]]), ROWS)),
    "nonzero": (lambda x: (x.nonzero(), x[x > 0], x.masked_select(x < 0)), (ROWS,)),
    # writes in place
    "written views": (_written, (X[:, :, :4, :4],)),
    "masked writes": (_masked, (X,)),
    "filled": (_filled, (ROWS,)),
    "written constants": (_constant_written, (ROWS,)),
    # layers
    "linear": (
        lambda x, w, b: (F.linear(x, w, b), F.linear(x, w), F.linear(x[0], w, b)),
        (FLAT, ROWS[:5], ROWS[0, :5]),
    ),
    "products": (
        lambda a, b: (
            a @ b,
            torch.mm(a, b),
            torch.bmm(a[None], b[None]),
            torch.addmm(b, a, b, beta=2, alpha=3),
            a.mv(b[0]),
            torch.outer(a[0], b[0]),
            torch.tensordot(a, b, 1),
        ),
        (ROWS, ROWS.T.contiguous()),
    ),
    "einsum": (
        lambda x: (
            torch.einsum("bchw,bdhw->bcd", x, x),
            torch.einsum("...ij->...ji", x),
            torch.einsum("ij,jk", x[0, 0], x[0, 1]),
        ),
        (X,),
    ),
    "attention": (
        lambda q, m: (
            F.scaled_dot_product_attention(q, q, q),
            F.scaled_dot_product_attention(q, q, q, is_causal=True),
            F.scaled_dot_product_attention(q, q, q, m),
            F.scaled_dot_product_attention(q, q, q, m.float(), scale=0.3),
            F.scaled_dot_product_attention(q.repeat(1, 2, 1, 1), q, q, enable_gqa=True),
        ),
        (X, MASK),
    ),
    "distances": (
        lambda x, y: (
            torch.cdist(x, y),
            F.cosine_similarity(x, y),
            F.pairwise_distance(x, y),
            torch.cdist(x, y, 1.0),
        ),
        (ROWS, POSITIVE),
    ),
    "conv": (
        lambda x, w: (
            F.conv2d(x, w),
            F.conv2d(x, w, stride=2, padding=1, dilation=2),
            F.conv2d(x, w.reshape(6, 1, 3, 2)[:3], groups=3, padding="same"),
            F.conv2d(x[0], w),
            F.conv1d(x[:, :, 0], w[:, :, 0]),
            F.conv3d(x[:, None], w[:, :1, None]),
        ),
        (X, X[:2, :, :3, :2].contiguous()),
    ),
    "conv_transpose": (
        lambda x, w: (
            F.conv_transpose2d(x, w),
            F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
            F.conv_transpose1d(x[:, :, 0], w[:, :, 0]),
        ),
        (X, X[:1, :, :3, :3].transpose(0, 1).contiguous()),
    ),
    "max_pool": (
        lambda x: (
            F.max_pool2d(x, 2),
            F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
            F.max_pool1d(x[0], 2),
            F.max_pool2d(x, 2, return_indices=True),
            F.max_pool2d(x[0], (1, 3), dilation=2),
        ),
        (X,),
    ),
    "avg_pool": (
        lambda x: (
            F.avg_pool2d(x, 2),
            F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            F.avg_pool1d(x[0], 4, 1),
            F.lp_pool2d(x.abs(), 2.0, 2),
        ),
        (X,),
    ),
    "adaptive": (
        lambda x: (
            F.adaptive_avg_pool2d(x, 1),
            F.adaptive_avg_pool2d(x, (3, 5)),
            F.adaptive_avg_pool2d(x, (None, 2)),
            F.adaptive_max_pool2d(x, 4),
            F.adaptive_avg_pool1d(x[0], 3),
        ),
        (X,),
    ),
    "windows": (
        lambda x: (
            F.unfold(x, 3, 1, 1, 2),
            F.fold(F.unfold(x, 2, stride=2), (8, 8), 2, stride=2),
            x.unfold(2, 3, 2),
        ),
        (X,),
    ),
    "norm layers": (
        lambda x: (
            F.layer_norm(x, (8,)),
            F.layer_norm(x, (8, 8), x[0, 0], x[0, 1]),
            F.group_norm(x, 3, x[0, 0, 0, :3]),
            F.instance_norm(x),
            F.rms_norm(x, (8,), x[0, 0, 0]),
            F.batch_norm(x, torch.zeros(3), torch.ones(3) * 2),
            F.local_response_norm(x, 2),
        ),
        (X,),
    ),
    "interpolate": (
        lambda x: (
            F.interpolate(x, scale_factor=2),
            F.interpolate(x, (5, 11), mode="bilinear"),
            F.interpolate(x, (5, 11), mode="bilinear", align_corners=True),
            F.interpolate(x, scale_factor=1.5, mode="bicubic"),
            F.interpolate(x, (4, 6), mode="nearest-exact"),
            F.interpolate(x, (3, 4), mode="bilinear", antialias=True),
            F.interpolate(x[0], 5, mode="linear"),
            F.interpolate(x, 12),
        ),
        (X,),
    ),
    "grid_sample": (
        lambda x, g: tuple(
            F.grid_sample(x, g, mode=m, padding_mode=p, align_corners=a)
            for m, p, a in [
                ("bilinear", "zeros", False),
                ("nearest", "border", True),
                ("bilinear", "reflection", True),
            ]
        ),
        (X, X[:, :2].permute(0, 2, 3, 1).contiguous() * 1.3),
    ),
    "affine_grid": (
        lambda t: (
            F.affine_grid(t, [2, 3, 4, 5], align_corners=False),
            F.affine_grid(t, [2, 3, 4, 5], align_corners=True),
        ),
        (X[:, :2, 0, :3].contiguous(),),
    ),
    "pad": (
        lambda x: (
            F.pad(x, (1, 2)),
            F.pad(x, (1, 1, 2, 0), value=3.0),
            F.pad(x, (1, 2, 3, 1), mode="reflect"),
            F.pad(x, (1, 1), mode="replicate"),
            F.pad(x, (2, 1, 0, 3), mode="circular"),
            F.pad(x, (-1, -2)),
        ),
        (X,),
    ),
    # losses
    "cross_entropy": (
        lambda x, t: (
            F.cross_entropy(x, t),
            F.cross_entropy(x, t, x[0].abs(), reduction="sum"),
            F.cross_entropy(x, t, ignore_index=2),
            F.nll_loss(x, t, reduction="none"),
        ),
        (FLAT[:, :, 0].contiguous(), LABELS),
    ),
    "losses": (
        lambda x, y: (
            F.mse_loss(x, y),
            F.l1_loss(x, y, reduction="sum"),
            F.smooth_l1_loss(x, y, beta=0.3),
            F.huber_loss(x, y, delta=0.3),
            F.kl_div(x, y, reduction="batchmean"),
            F.kl_div(x, y, log_target=True),
            F.binary_cross_entropy_with_logits(x, y, pos_weight=y[0]),
            F.binary_cross_entropy(y / 2, y / 3),
        ),
        (ROWS, POSITIVE),
    ),
}
