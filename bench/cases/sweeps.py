"""The suite "sweep": many calls in many settings, to find those that are slower than PyTorch's.

A call is a line of text, which is its name as well. It is timed for every type and layout of `x`;
with `backward` also together with the gradients of all inputs that are floats.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from cases.case import CASES, Call, Case, Make

GOAL = 1.1
FLOATS = ("float32", "bfloat16", "float64", "float16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
NUMBERS = FLOATS + INTEGERS
known: set[str] = set()
SMALL, MATRIX, IMAGES = "4,8", "1024,1024", "8,64,56,56"
LAYOUTS = {
    "": lambda torch, x: x,
    "transposed": lambda torch, x: x.transpose(-1, -2).contiguous().transpose(-1, -2),
    "every second": lambda torch, x: torch.stack([x, x], -1)[..., 0],
    "channels last": lambda torch, x: x.contiguous(memory_format=torch.channels_last),
}


def inputs(torch: Any, shape: str, dtype: str, layout: str) -> dict[str, Any]:
    """What a call can name: three tensors of `shape`, positive numbers where they are floats."""
    size, kind = [int(part) for part in shape.split(",")], getattr(torch, dtype)

    def drawn() -> Any:
        number = torch.rand(size) + 0.5 if kind.is_floating_point else torch.randint(1, 9, size)
        return LAYOUTS[layout](torch, number.to(kind))

    x, y, z = (drawn() for _ in range(3))
    return {
        "torch": torch,
        "F": torch.nn.functional,
        "x": x,
        "y": y,
        "z": z,
        "weight": lambda *size: (torch.randn(*size) / size[-1]).to(kind),
        "index": torch.randint(min(size), size),
        "mask": torch.rand(size) > 0.5,
        "column": y[..., :1],
        "row": y[..., :1, :],
    }


def maker(text: str, shape: str, dtype: str, layout: str, backward: bool, given: str) -> Make:
    def make(torch: Any) -> Call:
        names = inputs(torch, shape, dtype, layout)
        exec(given, names)
        if not backward:
            return eval(f"lambda: {text}", names)
        leaves = [
            value.requires_grad_()
            for value in names.values()
            if torch.is_tensor(value) and value.is_floating_point() and value.is_leaf
        ]
        call = eval(f"lambda: {text}", names)

        def run() -> Any:
            result = call()
            result = result[0] if isinstance(result, tuple) else result
            return torch.autograd.grad(result, leaves, torch.ones_like(result), allow_unused=True)

        return run

    return make


def sweep(
    calls: str,
    shapes: Iterable[str],
    dtypes: Iterable[str] = FLOATS,
    layouts: Iterable[str] = ("",),
    backward: bool = False,
    given: str = "",
) -> None:
    """Adds a case for each line of `calls` in each new setting; `given` is run before them all."""
    for text in calls.strip().splitlines():
        for shape in shapes:
            for dtype in dtypes:
                for layout in layouts:
                    for grad in (False, True) if backward else (False,):
                        parts = [text.strip(), dtype, shape, layout, "backward" if grad else ""]
                        name = "; ".join(part for part in parts if part)
                        if name not in known:
                            known.add(name)
                            make = maker(text, shape, dtype, layout, grad, given)
                            CASES.append(Case(name, "sweep", GOAL, make))


def each(names: str, form: str) -> str:
    """A line of `form` for every name."""
    return "\n".join(form.format(name) for name in names.split())


UNARY = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh digamma erf erfc erfinv exp exp2 expm1 "
    "floor frac lgamma log log10 log1p log2 neg reciprocal round rsqrt sigmoid sign sin sinh sqrt "
    "square tan tanh trunc isnan isfinite logical_not signbit sgn sinc i0 logit nan_to_num"
)
ACTIVATIONS = (
    "relu relu6 elu selu celu gelu silu mish softplus softsign tanhshrink hardtanh hardswish "
    "hardsigmoid hardshrink softshrink leaky_relu logsigmoid tanh sigmoid"
)
BINARY = (
    "add sub mul div pow fmod remainder maximum minimum fmax atan2 hypot copysign eq lt "
    "logical_and floor_divide logaddexp xlogy nextafter"
)
sweep(each(UNARY, "torch.{}(x)"), (SMALL, MATRIX), FLOATS, ("", "transposed", "every second"))
sweep(each(ACTIVATIONS, "F.{}(x)"), (SMALL, MATRIX), FLOATS, backward=True, given="x -= 1")
sweep(each(BINARY, "torch.{}(x, y)"), (SMALL, MATRIX), FLOATS, ("", "transposed"))
sweep(each(BINARY, "torch.{}(x, column)"), (MATRIX,), FLOATS)
sweep(each(BINARY, "torch.{}(x, row)"), (MATRIX,), ("float32", "bfloat16"))
sweep(each("add sub mul div pow lt", "torch.{}(x, 2)"), (SMALL, MATRIX), NUMBERS)
sweep(
    each("abs neg sign square bitwise_not logical_not sqrt sin", "torch.{}(x)"),
    (SMALL, MATRIX), INTEGERS, ("", "every second"),
)  # fmt: skip
sweep(
    each(
        "add sub mul div fmod remainder floor_divide maximum eq lt logical_and bitwise_and "
        "bitwise_xor bitwise_left_shift pow gcd",
        "torch.{}(x, y)",
    ),
    (SMALL, MATRIX), INTEGERS, ("", "transposed"),
)  # fmt: skip
sweep(
    """
    torch.where(mask, x, y)
    torch.where(mask, x, 0)
    x.masked_fill(mask, 1)
    x.clamp(1, 2)
    x.clamp(min=1)
    torch.lerp(x, y, 0.3) if x.is_floating_point() else x
    torch.addcmul(x, y, z, value=2)
    x.clone()
    x.contiguous()
    x.add_(1)
    x.zero_()
    x.copy_(y)
    """,
    (SMALL, MATRIX), NUMBERS, ("", "transposed", "every second"),
)  # fmt: skip
sweep(
    each("float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool", "x.to(torch.{})"),
    (SMALL, MATRIX), NUMBERS, ("", "transposed"),
)  # fmt: skip

REDUCTIONS = (
    "sum mean amax amin prod var std norm argmax argmin max min logsumexp all any "
    "count_nonzero median nansum softmax log_softmax cumsum cumprod cummax logcumsumexp sort "
    "argsort"
)
sweep(each("sum mean amax prod argmax max std norm all median", "x.{}()"), (SMALL, MATRIX), FLOATS)
sweep(
    each(REDUCTIONS, "x.{}(dim=0)") + "\n" + each(REDUCTIONS, "x.{}(dim=-1)"),
    (SMALL, MATRIX), FLOATS, ("", "transposed"), backward=False,
)  # fmt: skip
sweep(
    each("sum amax argmax prod cumsum cummax any sort", "x.{}(dim=-1)")
    + "\n"
    + each("sum amax argmax prod cumsum cummax any sort", "x.{}(dim=0)"),
    (SMALL, MATRIX), INTEGERS,
)  # fmt: skip
sweep(
    each("sum mean amax var norm argmax softmax cumsum", "x.{}(dim=1)")
    + "\nx.sum((0, 2))\nx.mean((1, 2))\nx.amax((0, 1))\nx.var((0, 2, 3))\nx.std((2, 3))",
    (IMAGES,), ("float32", "bfloat16"), ("", "channels last"),
)  # fmt: skip

sweep(
    """
    x.gather(0, index)
    x.gather(1, index)
    x.scatter(0, index, y)
    x.scatter_add(1, index, y)
    x.scatter_reduce(0, index, y, 'amax')
    x.index_select(0, index[0])
    x.index_select(1, index[0])
    x[index[0]]
    x[:, index[0]]
    x[index[0], index[1]]
    x[mask]
    x.masked_select(mask)
    x.index_add(0, index[:, 0], y)
    x.index_copy(0, index[:, 0], y)
    x.index_fill(0, index[0], 1)
    x.index_put((index[:, 0],), y)
    x.index_put((index[:, 0],), y, accumulate=True)
    x.masked_scatter(mask, y)
    x.take(index)
    x.take_along_dim(index, 1)
    torch.cat([x, y, z], 0)
    torch.cat([x, y, z], 1)
    torch.stack([x, y, z], 0)
    torch.stack([x, y, z], -1)
    x.flip(0)
    x.flip(1)
    x.roll(3, 1)
    x.rot90()
    x.tril()
    x.triu(1)
    x.diagonal().clone()
    x.repeat(2, 2)
    x.repeat_interleave(2, 1)
    x.tile(2)
    x.topk(4)
    x.topk(4, dim=0)
    x.kthvalue(3)
    x.unique()
    x.nonzero()
    x.t().contiguous()
    x.unfold(1, 4, 2).contiguous()
    x.diff(dim=1)
    x.expand(3, *x.shape).contiguous()
    """,
    (SMALL, "512,512"), ("float32", "bfloat16", "float64", "int64", "uint8"),
)  # fmt: skip
sweep(
    """
    F.embedding(index, x)
    x.gather(1, index)
    x.index_select(0, index[0])
    x[index[0]]
    x.scatter_add(1, index, y)
    torch.cat([x, y, z], 1)
    x.cumsum(1)
    x.cumprod(1)
    x.logsumexp(1)
    x.softmax(1)
    x.log_softmax(0)
    x.norm(dim=1)
    x.std(1)
    x.amax(1)
    x.sort(1)
    x.repeat(2, 2)
    x.flip(1)
    x.tril()
    x.pow(3)
    x ** y
    x / y
    x * column
    x + row
    torch.where(mask, x, y)
    x.prod(1)
    x.max(1)
    x.unfold(1, 4, 2)
    """,
    (SMALL, "512,512"), ("float32", "bfloat16", "float64"), backward=True,
)  # fmt: skip

LOSSES = "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits"
sweep(
    each(LOSSES, "F.{}(x, z.detach())")
    + """
    F.cross_entropy(x, index[:, 0])
    F.cross_entropy(x, index[:, 0], label_smoothing=0.1)
    F.nll_loss(x, index[:, 0])
    F.soft_margin_loss(x, z.detach())
    F.cosine_embedding_loss(x, y, mask[:, 0] * 2. - 1)
    F.triplet_margin_loss(x, y, z)
    F.margin_ranking_loss(x, y, mask * 2. - 1)
    F.cosine_similarity(x, y)
    F.pairwise_distance(x, y)
    F.multi_margin_loss(x, index[:, 0])
    F.normalize(x)
    F.softmax(x, 1)
    F.log_softmax(x, 1)
    F.softmin(x, 0)
    F.glu(x)
    F.layer_norm(x, x.shape[1:])
    F.layer_norm(x, x.shape[1:], x[0], y[0])
    F.rms_norm(x, x.shape[1:])
    F.prelu(x, torch.ones(1, dtype=x.dtype))
    F.gelu(x, approximate='tanh')
    F.rrelu(x)
    F.threshold(x, 1., 0.)
    """,
    (SMALL, "1024,512"), ("float32", "bfloat16", "float64"), backward=True,
)  # fmt: skip

sweep(
    """
    F.batch_norm(x, None, None, training=True)
    F.batch_norm(x, m.detach(), m.detach(), w, w)
    F.group_norm(x, 8)
    F.group_norm(x, 8, w, w)
    F.instance_norm(x)
    F.max_pool2d(x, 2)
    F.max_pool2d(x, 3, 2, 1)
    F.avg_pool2d(x, 2)
    F.avg_pool2d(x, 3, 1, 1)
    F.adaptive_avg_pool2d(x, 1)
    F.adaptive_avg_pool2d(x, 7)
    F.adaptive_max_pool2d(x, 7)
    F.lp_pool2d(x, 2, 2)
    F.interpolate(x, scale_factor=2)
    F.interpolate(x, scale_factor=2, mode='bilinear')
    F.interpolate(x, scale_factor=0.5, mode='bilinear', antialias=True)
    F.interpolate(x, scale_factor=2, mode='bicubic')
    F.pad(x, (1, 1, 1, 1))
    F.pad(x, (1, 1, 1, 1), mode='reflect')
    F.pad(x, (1, 1, 1, 1), mode='replicate')
    F.pad(x, (1, 1, 1, 1), mode='circular')
    F.unfold(x, 3, padding=1)
    F.pixel_shuffle(x, 2)
    F.pixel_unshuffle(x, 2)
    F.channel_shuffle(x, 4)
    F.local_response_norm(x, 5)
    F.softmax(x, 1)
    F.log_softmax(x, 1)
    F.relu(x)
    F.silu(x)
    x + y
    x * m[:, None, None]
    x.mean((2, 3))
    """,
    ("2,8,8,8", IMAGES), ("float32", "bfloat16"), ("", "channels last"), backward=True,
    given="m, w = y[0, :, 0, 0].detach().clone(), z[0, :, 0, 0].detach().clone()",
)  # fmt: skip
sweep(
    """
    F.conv2d(x, k3, padding=1)
    F.conv2d(x, k3, b, stride=2, padding=1)
    F.conv2d(x, k1)
    F.conv2d(x, k5, padding=2)
    F.conv2d(x, depthwise, padding=1, groups=x.shape[1])
    F.conv2d(x, grouped, padding=1, groups=x.shape[1] // 4)
    F.conv2d(x, k3, padding=2, dilation=2)
    F.conv_transpose2d(x, t3, stride=2, padding=1)
    F.conv_transpose2d(x, t2, stride=2)
    """,
    ("2,8,8,8", "8,64,28,28", "1,128,14,14"), ("float32", "bfloat16", "float64"),
    ("", "channels last"), backward=True,
    given=(
        "c = x.shape[1]; k1 = weight(c, c, 1, 1); k3 = weight(c, c, 3, 3); "
        "k5 = weight(c, c, 5, 5); depthwise = weight(c, 1, 3, 3); "
        "grouped = weight(c, 4, 3, 3); b = weight(c); "
        "t3 = weight(c, c, 3, 3); t2 = weight(c, c, 2, 2)"
    ),
)  # fmt: skip
sweep(
    """
    F.conv1d(x, k3, padding=1)
    F.conv1d(x, k3, padding=2, dilation=2)
    F.conv_transpose1d(x, k3, stride=2)
    F.max_pool1d(x, 2)
    F.avg_pool1d(x, 2)
    F.interpolate(x, scale_factor=2, mode='linear')
    F.batch_norm(x, None, None, training=True)
    F.pad(x, (2, 2), mode='reflect')
    x @ x.transpose(1, 2)
    torch.bmm(x, y.transpose(1, 2))
    x.transpose(1, 2).contiguous()
    """,
    ("2,8,16", "8,64,512"), ("float32", "bfloat16"), backward=True,
    given="c = x.shape[1]; k3 = weight(c, c, 3)",
)  # fmt: skip
sweep(
    """
    F.conv3d(x, k3, padding=1)
    F.max_pool3d(x, 2)
    F.avg_pool3d(x, 2)
    F.interpolate(x, scale_factor=2, mode='trilinear')
    F.batch_norm(x, None, None, training=True)
    F.pad(x, (1, 1, 1, 1, 1, 1), mode='replicate')
    """,
    ("2,16,8,16,16",), ("float32", "bfloat16"), backward=True,
    given="c = x.shape[1]; k3 = weight(c, c, 3, 3, 3)",
)  # fmt: skip
sweep(
    """
    x @ y
    x @ y.t()
    x.t() @ y
    torch.mv(x, y[0])
    torch.addmm(x, y, z)
    F.linear(x, y, z[0])
    F.bilinear(x[:8], y[:8], z.expand(4, *z.shape))
    torch.outer(x[0], y[0])
    torch.einsum('ij,kj->ik', x, y)
    torch.cdist(x[:64], y[:64])
    """,
    ("4,4", "64,64", "512,512"), FLOATS, backward=True,
)  # fmt: skip
sweep(
    """
    torch.linalg.inv(a)
    torch.linalg.det(a)
    torch.linalg.solve(a, y)
    torch.linalg.qr(a)
    torch.linalg.svd(a)
    torch.linalg.eigh(a)
    torch.linalg.cholesky(a)
    torch.linalg.lstsq(a, y)
    torch.linalg.norm(x)
    torch.linalg.matrix_exp(x / 1000)
    torch.linalg.pinv(a)
    torch.linalg.slogdet(a)
    torch.kron(x[:16, :16], y[:16, :16])
    torch.fft.fft(x)
    torch.fft.rfft(x)
    torch.fft.fft2(x)
    torch.fft.irfft(x)
    torch.trace(x)
    """,
    ("4,4", "64,64", "256,256"), ("float32", "float64"),
    given="a = x @ x.t() / x.shape[0] + torch.eye(x.shape[0], dtype=x.dtype)",
)  # fmt: skip
sweep(
    """
    F.scaled_dot_product_attention(x, y, z)
    F.scaled_dot_product_attention(x, y, z, is_causal=True)
    F.scaled_dot_product_attention(x, y, z, bias)
    x.softmax(-1)
    x @ y.transpose(-1, -2)
    x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)
    F.dropout(x, 0.1)
    """,
    ("1,2,8,8", "4,8,256,64", "1,12,1024,64"), ("float32", "bfloat16"), backward=True,
    given="bias = weight(x.shape[2], x.shape[2])",
)  # fmt: skip
sweep(
    each("LSTM GRU RNN", "layer_{}(x)"),
    ("2,4,8", "16,32,128"), ("float32", "bfloat16"), backward=True,
    given=(
        "layer_LSTM, layer_GRU, layer_RNN = (k(x.shape[2], 128, batch_first=True).to(x.dtype) "
        "for k in (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN))"
    ),
)  # fmt: skip
sweep(
    """
    torch.rand(n)
    torch.randn(n)
    torch.randint(0, 9, n)
    torch.randperm(n[0])
    torch.bernoulli(x.clamp(max=1))
    torch.multinomial(x, 4)
    torch.arange(n[0])
    torch.linspace(0, 1, n[0])
    torch.zeros(n)
    torch.full(n, 2.)
    torch.eye(n[0])
    torch.tensor(n)
    x.tolist()
    x.numpy()
    torch.searchsorted(s, x)
    torch.bucketize(x, s[0])
    torch.histc(x, 10)
    torch.bincount(index.flatten())
    torch.equal(x, y)
    torch.allclose(x, y)
    x.view(-1)
    x.unsqueeze(0)
    x.permute(1, 0)
    x.chunk(2)
    x.split(1)
    x.unbind()
    x.item() if x.numel() == 1 else x[0, 0].item()
    x[0]
    x[1:3, 2]
    x[..., None]
    """,
    (SMALL, MATRIX), ("float32", "float64"), given="n = list(x.shape); s = x.sort(-1)[0]",
)  # fmt: skip
