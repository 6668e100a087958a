"""Attention: the tiled kernel, its randomness and memory, masks by name, and the layers' errors."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import rushlight as torch
from rushlight import nn
from rushlight.autograd import gradcheck, gradgradcheck
from rushlight.nn import functional as F
from rushlight.nn.attention import SDPBackend, sdpa_kernel
from rushlight.nn.attention.bias import CausalVariant, causal_lower_right, causal_upper_left


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


def test_two_masks_become_one() -> None:
    layer, query = nn.MultiheadAttention(4, 2), torch.zeros(2, 3, 4)
    future = torch.ones(3, 3, dtype=torch.bool).triu(1)
    padding = torch.tensor([[True, False, False], [False, False, True]])
    both, kind = layer.merge_masks(future, padding, query)
    assert kind == 2 and both.shape == (2, 2, 3, 3)
    assert torch.equal(both[:, 1], future | padding[:, None])
    of_heads = torch.arange(4.0)[:, None, None].expand(4, 3, 3)
    merged, _ = layer.merge_masks(of_heads, None, query)
    assert merged[:, :, 0, 0].tolist() == [[0, 1], [2, 3]]
    assert layer.merge_masks(None, padding, query) == (padding, 1)
    assert layer.merge_masks(None, None, query) == (None, None)


def triple(L, S, E, V, *batch, **options):
    options = {"requires_grad": True, "dtype": torch.float64, **options}
    return (
        torch.randn(*batch, L, E, **options),
        torch.randn(*batch, S, E, **options),
        torch.randn(*batch, S, V, **options),
    )


def mask_of(kind, L, S):
    if kind == "bool":
        return torch.rand(L, S) > 0.3
    return torch.randn(L, S, dtype=torch.float64, requires_grad=True) if kind == "float" else None


def gradients(out, inputs, grad, **options):
    return torch.autograd.grad(out, inputs, grad, **options)


@pytest.mark.parametrize("kind", [None, "bool", "float"])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    "sizes", [(130, 70, 5, 3), (70, 300, 17, 33), (1, 65, 4, 4), (64, 1, 1, 1)]
)
def test_gradients_of_tiles_equal_those_made_of_ops(sizes, is_causal, kind) -> None:
    q, k, v = triple(*sizes, 2, 2)
    mask = mask_of(kind, *sizes[:2])
    inputs = [q, k, v] + [mask] * (kind == "float")
    for p in (0.0, 0.4):
        torch.manual_seed(1)
        out = F.scaled_dot_product_attention(q, k, v, mask, p, is_causal)
        g = torch.randn_like(out)
        fused = gradients(out, inputs, g, retain_graph=True)
        as_ops = gradients(out, inputs, g, create_graph=True)
        for mine, expected in zip(fused, as_ops, strict=True):
            np.testing.assert_allclose(mine.numpy(), expected.detach().numpy(), atol=1e-12)


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize(
    "sizes",
    [(4, 5, 70, 130), (70, 130), (5, 70, 130), (4, 1, 70, 130), (1, 5, 1, 130), (4, 1, 1, 130),
     (4, 5, 70, 1), (1, 1, 1, 1), (70, 1), (1,)],
)  # fmt: skip
def test_gradients_of_masks_that_are_shared(sizes, is_causal) -> None:
    q, k, v = triple(70, 130, 5, 3, 4, 5)
    mask = torch.randn(*sizes, dtype=torch.float64, requires_grad=True)
    out = F.scaled_dot_product_attention(q, k, v, mask, is_causal=is_causal)
    g = torch.randn_like(out)
    inputs = [q, k, v, mask]
    fused = gradients(out, inputs, g, retain_graph=True)
    as_ops = gradients(out, inputs, g, create_graph=True)
    assert fused[3].shape == sizes
    for mine, expected in zip(fused, as_ops, strict=True):
        np.testing.assert_allclose(mine.numpy(), expected.detach().numpy(), atol=1e-11)


@pytest.mark.parametrize("p", [0.0, 0.5])
@pytest.mark.parametrize("kind", [None, "bool", "float"])
def test_first_and_second_gradients(kind, p) -> None:
    mask = mask_of(kind, 3, 5)

    def attend(q, k, v, *masks):
        torch.manual_seed(3)
        return F.scaled_dot_product_attention(q, k, v, *(masks or (mask,)), dropout_p=p)

    inputs = triple(3, 5, 2, 2, 2) + ((mask,) if kind == "float" else ())
    assert gradcheck(attend, inputs)
    assert gradgradcheck(attend, inputs)


@pytest.mark.parametrize("items", [1, 2, 7])
@pytest.mark.parametrize("is_causal", [False, True])
def test_threads_do_not_show(items, is_causal) -> None:
    inputs = (*triple(150, 200, 16, 16, items), mask_of("float", 150, 200))

    def run():
        torch.manual_seed(2)
        out = F.scaled_dot_product_attention(*inputs, dropout_p=0.25, is_causal=is_causal)
        return [out.detach(), *gradients(out, inputs, torch.ones_like(out))]

    before = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        expected = run()
        torch.set_num_threads(5)
        for mine, theirs in zip(run(), expected, strict=True):
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), atol=1e-12)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("keys", [8, 10, 131])
def test_dropout_drops_and_scales_weights(keys) -> None:
    q, k, _ = triple(50, keys, 4, 1, 2, requires_grad=False)
    eye = torch.eye(keys, dtype=torch.float64).expand(2, keys, keys)
    weights = F.scaled_dot_product_attention(q, k, eye).numpy()
    dropped = F.scaled_dot_product_attention(q, k, eye, dropout_p=0.25).numpy()
    kept = dropped != 0
    assert kept.mean() == pytest.approx(0.75, abs=0.08)
    np.testing.assert_allclose(dropped[kept], weights[kept] / 0.75)


def test_dropout_follows_the_seed_and_moves_on() -> None:
    inputs = triple(8, 8, 4, 4)
    torch.manual_seed(5)
    first, second = (F.scaled_dot_product_attention(*inputs, dropout_p=0.5) for _ in range(2))
    torch.manual_seed(5)
    assert torch.equal(F.scaled_dot_product_attention(*inputs, dropout_p=0.5), first)
    assert not torch.equal(first, second)


def test_vmap_draws_as_it_is_told() -> None:
    q, k, v = triple(4, 6, 3, 3, 5, requires_grad=False)

    def attend(*args):
        return F.scaled_dot_product_attention(*args, dropout_p=0.5)

    with pytest.raises(RuntimeError, match="randomness"):
        torch.func.vmap(attend)(q, k, v)
    same = torch.func.vmap(attend, randomness="same")(*(x[:1].expand(5, -1, -1) for x in (q, k, v)))
    assert torch.equal(same[0], same[4])
    assert torch.func.vmap(attend, randomness="different")(q, k, v).shape == (5, 4, 3)


def test_a_query_that_sees_no_key_gives_zeros_and_no_gradient() -> None:
    q, k, v = triple(3, 4, 2, 2)
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[1] = False
    for blind in (mask, torch.zeros(3, 4, dtype=torch.float64).masked_fill(~mask, -torch.inf)):
        out = F.scaled_dot_product_attention(q, k, v, blind)
        assert out[1].tolist() == [0, 0]
        for create_graph in (False, True):
            (grad,) = gradients(out.sum(), q, None, create_graph=create_graph, retain_graph=True)
            assert grad[1].tolist() == [0, 0]
            assert grad.isfinite().all()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_bad_numbers_show_in_the_rows_that_see_them(bad) -> None:
    q, k, v = triple(70, 70, 3, 3, requires_grad=False)
    k[66, 0] = bad
    out = F.scaled_dot_product_attention(q.abs(), k, v, is_causal=True)
    assert out[:66].isfinite().all()
    assert out[66:].isnan().all()


def test_heads_lie_as_the_query_has_them() -> None:
    q = torch.randn(2, 5, 3, 4).transpose(1, 2)  # (batch, heads, length, width)
    out = F.scaled_dot_product_attention(q, q, q)
    assert out.transpose(1, 2).is_contiguous()
    assert F.scaled_dot_product_attention(*[q.contiguous()] * 3).is_contiguous()


def test_scores_are_never_in_memory_at_once() -> None:
    # The scores of 4096 queries and keys take 64 MB.
    program = """if True:
        import rushlight as torch
        attention = torch.nn.functional.scaled_dot_product_attention
        q, k, v = (torch.randn(1, 1, 4096, 16, requires_grad=True) for _ in range(3))
        for causal in (False, True):
            attention(q, k, v, is_causal=causal).sum().backward()
        print(torch._C._memory_stats()["peak"])
    """
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 12e6


def test_the_gradient_of_a_shared_mask_takes_no_memory_for_scores() -> None:
    # The scores of 64 heads take 64 MB, the mask 1 MB and its shares of sums 8 MB.
    program = """if True:
        import rushlight as torch
        attention = torch.nn.functional.scaled_dot_product_attention
        q, k, v = (torch.randn(8, 8, 512, 16) for _ in range(3))
        mask = torch.randn(512, 512, requires_grad=True)
        attention(q, k, v, mask).sum().backward()
        print(torch._C._memory_stats()["peak"])
    """
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert int(run.stdout) < 32e6


# float16 computes in float; processors that multiply tiles of bfloat16 round probabilities to it.
HALF_TOLERANCES = [(torch.float16, 0, 0), (torch.bfloat16, 1e-2, 4e-3)]
HALF_SIZES = [(100, 100, 16, 16), (33, 600, 24, 32), (300, 65, 17, 48), (257, 513, 64, 16)]


@pytest.mark.parametrize(("dtype", "rtol", "atol"), HALF_TOLERANCES)
@pytest.mark.parametrize(("queries", "keys", "features", "value_features"), HALF_SIZES)
def test_half_types_compute_in_float(
    queries, keys, features, value_features, dtype, rtol, atol
) -> None:
    q, k, v = (x.detach().to(dtype) for x in triple(queries, keys, features, value_features, 2, 3))
    kept = torch.rand(queries, keys) > 0.3
    kept[5] = False
    cases = [
        ((q, k, v), {}),
        ((q, k, v), {"is_causal": True, "scale": 0.7}),
        ((q, k, v, torch.randn(queries, keys)), {}),
        ((q, k, v, kept), {}),
        ((q, k[:1, :1], v.transpose(1, 2).contiguous().transpose(1, 2)), {}),
        ((q.mT.contiguous().mT, k.mT.contiguous().mT, v.mT.contiguous().mT), {}),
    ]
    for arguments, options in cases:
        out = F.scaled_dot_product_attention(*arguments, **options)
        wide = [a if a.dtype == torch.bool else a.float() for a in arguments]
        expected = F.scaled_dot_product_attention(*wide, **options)
        assert out.dtype == dtype
        torch.testing.assert_close(out, expected.to(dtype), rtol=rtol, atol=atol)


def attention_of_rows(q, k, v, mask=None, is_causal=False):
    """What one query of each head sees, in NumPy."""
    q, k, v = (x.double().numpy() for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    if is_causal:
        scores[..., 1:] = -np.inf
    if mask is not None:
        mask = mask.numpy()
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize(
    ("dtype", "atol"),
    [
        (torch.float32, 1e-5),
        (torch.float64, 1e-12),
        (torch.float16, 2e-3),
        (torch.bfloat16, 2e-2),
    ],
)
@pytest.mark.parametrize("sizes", [(1, 16, 16), (5, 64, 48), (67, 80, 128), (130, 16, 144)])
def test_one_query_reads_keys_where_they_lie(sizes, dtype, atol) -> None:
    S, E, V = sizes
    q, k, v = triple(1, S + 9, E, V, 2, 6, dtype=dtype, requires_grad=False)
    k, v = k[..., 4 : S + 4, :], v[..., :S, :]  # of a cache that has room for more
    positions = k.transpose(1, 2).contiguous().transpose(1, 2)  # heads within positions
    mask, bias = torch.rand(2, 1, 1, S) > 0.3, torch.randn(S).reshape(1, S)
    mask[..., 0] = True
    cases = [
        ((q, k, v), {}),
        ((q, positions, v), {"is_causal": True}),
        ((q, k, v, mask), {}),
        ((q, k, v, bias), {}),
        ((q, k[:1, :1], v), {}),
        ((q.transpose(0, 1).contiguous().transpose(0, 1), k, v), {}),
    ]
    for arguments, options in cases:
        out = F.scaled_dot_product_attention(*arguments, **options)
        assert out.dtype == dtype
        expected = attention_of_rows(*arguments, **options)
        np.testing.assert_allclose(out.double().numpy(), expected, rtol=0, atol=atol)
    out = F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True)
    shared = (x[:, :2].repeat_interleave(3, 1) for x in (k, v))
    np.testing.assert_allclose(
        out.double().numpy(), attention_of_rows(q, *shared), rtol=0, atol=atol
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([torch.ones(3)] * 3, "at least 2 dims"),
        ([torch.ones(2, 3), torch.ones(2, 4), torch.ones(2, 3)], "same number of features"),
        ([torch.ones(2, 3), torch.ones(2, 3), torch.ones(3, 3)], "same length"),
        ([torch.ones(2, 3), torch.ones(2, 3).double(), torch.ones(2, 3)], "same dtype"),
        (
            [torch.ones(2, 2, 3), torch.ones(3, 2, 3), torch.ones(2, 3)],
            "^scaled.* do not broadcast",
        ),
        ([torch.ones(2, 3)] * 3 + [torch.ones(2, 2).long()], "attn_mask dtype to be bool"),
        ([torch.ones(2, 3)] * 3 + [torch.ones(3, 2)], "does not broadcast"),
        ([torch.ones(2, 3)] * 3 + [None, 1.5], "between 0 and 1"),
        ([torch.ones(2, 3)] * 3 + [None, float("nan")], "between 0 and 1"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments, message) -> None:
    with pytest.raises(RuntimeError, match=message):
        F.scaled_dot_product_attention(*arguments)


def test_heads_that_do_not_divide_are_refused() -> None:
    q, k = torch.ones(1, 6, 2, 2), torch.ones(1, 4, 2, 2)
    with pytest.raises(RuntimeError, match="must divide the number of heads"):
        F.scaled_dot_product_attention(q, k, k, enable_gqa=True)
    with pytest.raises(IndexError):
        F.scaled_dot_product_attention(q[0, 0], k[0, 0], k[0, 0], enable_gqa=True)


@pytest.mark.parametrize("make", [causal_upper_left, causal_lower_right])
def test_causal_biases_are_masks(make) -> None:
    q, k, v = triple(3, 5, 2, 2, 1, 2)
    diagonal = 0 if make is causal_upper_left else 2
    bias, mask = make(3, 5), torch.ones(3, 5, dtype=torch.bool).tril(diagonal)
    out = F.scaled_dot_product_attention(q, k, v, bias)
    assert torch.equal(out, F.scaled_dot_product_attention(q, k, v, attn_mask=mask))
    assert repr(bias) == repr(mask)
    with pytest.raises(ValueError, match="is_causal"):
        F.scaled_dot_product_attention(q, k, v, bias, is_causal=True)


def test_causal_bias_warns_of_queries_that_see_nothing() -> None:
    with pytest.warns(UserWarning, match="first 2 queries see no key"):
        bias = causal_lower_right(5, 3)
    assert bias.variant == CausalVariant.LOWER_RIGHT


def test_kernel_switches_are_remembered() -> None:
    cuda = torch.backends.cuda
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        assert cuda.math_sdp_enabled()
        assert cuda.flash_sdp_enabled()
        assert not cuda.mem_efficient_sdp_enabled()
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION, set_priority=True):
        assert cuda.cudnn_sdp_enabled()
        assert not cuda.math_sdp_enabled()
    assert cuda.math_sdp_enabled()
    with pytest.raises(AssertionError, match="SDPBackend"):
        sdpa_kernel("math")


def test_layer_attention_equals_weights_times_values() -> None:
    layer = nn.MultiheadAttention(6, 2, batch_first=True)
    x = torch.randn(2, 5, 6)
    mask = torch.rand(5, 5) > 0.7
    mask.fill_diagonal_(False)
    plain, none = layer(x, x, x, attn_mask=mask, need_weights=False)
    with_weights, weights = layer(x, x, x, attn_mask=mask)
    assert none is None
    np.testing.assert_allclose(plain.tolist(), with_weights.tolist(), atol=1e-6)
    assert (weights[:, mask] == 0).all()


def test_results_for_inference_have_the_batch_first_in_memory() -> None:
    layer = nn.MultiheadAttention(6, 2, batch_first=True).eval()
    x = torch.randn(2, 5, 6)
    with torch.no_grad():
        assert layer(x, x, x)[0].view(10, 6).shape == (10, 6)


def test_mismatched_masks_are_warned_of() -> None:
    layer = nn.MultiheadAttention(4, 2)
    x, padding = torch.ones(3, 1, 4), torch.zeros(1, 3, dtype=torch.bool)
    with pytest.warns(UserWarning, match="mismatched key_padding_mask and attn_mask"):
        layer(x, x, x, key_padding_mask=padding, attn_mask=torch.zeros(3, 3))
    encoder = nn.TransformerEncoderLayer(4, 2, 4)
    with pytest.warns(UserWarning, match="mismatched src_key_padding_mask and src_mask"):
        encoder(x, torch.zeros(3, 3), padding)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(x, x, x, key_padding_mask=padding, attn_mask=torch.zeros(3, 3, dtype=torch.bool))


@pytest.mark.parametrize(
    ("error", "message", "call"),
    [
        (ValueError, "greater than 0", lambda: nn.MultiheadAttention(0, 1)),
        (AssertionError, "divisible", lambda: nn.MultiheadAttention(5, 2)),
        (AssertionError, "4-D query", lambda: attend(query=torch.ones(1, 1, 1, 4))),
        (AssertionError, "to be 3-D", lambda: attend(key=torch.ones(3, 4))),
        (AssertionError, "embedding dimension", lambda: attend(*[torch.ones(3, 1, 6)] * 3)),
        (AssertionError, "does not match value", lambda: attend(value=torch.ones(2, 1, 4))),
        (AssertionError, "bool and floating", lambda: attend(attn_mask=torch.ones(3, 3).int())),
        (AssertionError, "2-D or 3-D", lambda: attend(attn_mask=torch.ones(3))),
        (RuntimeError, "2D attn_mask", lambda: attend(attn_mask=torch.ones(2, 3))),
        (RuntimeError, "3D attn_mask", lambda: attend(attn_mask=torch.ones(1, 3, 3))),
        (AssertionError, "key_padding_mask", lambda: attend(key_padding_mask=torch.ones(1, 2))),
        (AssertionError, "to be None or 2-D", lambda: attend(key_padding_mask=torch.ones(3))),
        (RuntimeError, "Need attn_mask", lambda: attend(is_causal=True)),
        (RuntimeError, "relu/gelu", lambda: nn.TransformerEncoderLayer(4, 2, activation="tanh")),
        (RuntimeError, "batch number", lambda: transform((3, 1, 4), (3, 2, 4))),
        (RuntimeError, "feature number", lambda: transform((3, 1, 4), (3, 1, 5))),
    ],
)
def test_mistakes_raise_what_pytorch_raises(error, message, call) -> None:
    with pytest.raises(error, match=message):
        call()


def attend(*inputs, **changes):
    names = dict.fromkeys(("query", "key", "value"), torch.ones(3, 1, 4))
    names.update(zip(names, inputs, strict=False))
    return nn.MultiheadAttention(4, 2)(**{**names, **changes})


def transform(source, target):
    return nn.Transformer(4, 2, 1, 1, 4)(torch.ones(source), torch.ones(target))


def test_padding_does_not_reach_other_positions() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
    encoder.eval()
    x = torch.randn(1, 5, 8)
    padding = torch.tensor([[False, False, False, True, True]])
    padded = encoder(x, src_key_padding_mask=padding)[:, :3]
    np.testing.assert_allclose(padded.tolist(), encoder(x[:, :3]).tolist(), atol=1e-6)


def test_causal_layers_do_not_see_the_future() -> None:
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 2).eval()
    x = torch.randn(5, 1, 8)
    before = encoder(x, mask)
    x[3:] += 1
    assert torch.equal(encoder(x, mask, is_causal=True)[:3], before[:3])
    np.testing.assert_allclose(encoder(x, mask, is_causal=False)[:3].tolist(), before[:3].tolist())


def test_registered_kernels_are_put_in_place_and_taken_away() -> None:
    attention, calls = torch.nn.attention, []

    class Handle:
        def remove(self) -> None:
            calls.append("removed")

    def register() -> Handle:
        calls.append("registered")
        return Handle()

    attention.register_flash_attention_impl("mine", register_fn=register)
    try:
        assert attention.list_flash_attention_impls() == ["mine"]
        attention.activate_flash_attention_impl("mine")
        assert attention.current_flash_attention_impl() == "mine"
        with pytest.raises(ValueError, match="Unknown flash attention impl 'FA9'"):
            attention.activate_flash_attention_impl("FA9")
        assert attention.current_flash_attention_impl() is None
        assert calls == ["registered", "removed"]
    finally:
        del attention._implementations["mine"]


@pytest.mark.parametrize("norm_first", [False, True])
def test_function_of_a_layer_in_inference_equals_the_layer(norm_first) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=norm_first).eval()
    x, padding = torch.randn(3, 5, 8), torch.arange(5) >= torch.tensor([[3], [5], [4]])
    attention = layer.self_attn
    out = torch._transformer_encoder_layer_fwd(
        x,
        8,
        2,
        attention.in_proj_weight,
        attention.in_proj_bias,
        attention.out_proj.weight,
        attention.out_proj.bias,
        False,
        norm_first,
        layer.norm1.eps,
        *layer.norm1.parameters(),
        *layer.norm2.parameters(),
        *layer.linear1.parameters(),
        *layer.linear2.parameters(),
        padding,
        1,
    )
    torch.testing.assert_close(out, layer(x, src_key_padding_mask=padding))


def test_copies_of_the_layers_find_what_they_call() -> None:
    x, mask = torch.zeros(3, 2, 4), nn.Transformer.generate_square_subsequent_mask(3)
    assert F._mha_shape_check(x, x, x, None, mask, 2)
    assert not F._mha_shape_check(x[:, 0], x[:, 0], x[:, 0], None, None, 2)
    with pytest.raises(AssertionError, match="attn_mask"):
        F._mha_shape_check(x, x, x, None, mask[0], 2)
    of_layers = nn.modules.transformer
    assert (of_layers._get_seq_len(x, False), of_layers._get_seq_len(x, True)) == (3, 2)
    assert of_layers._get_seq_len(torch.nested.nested_tensor([x[0], x[1]]), True) is None
    assert of_layers._detect_is_causal_mask(mask) and of_layers._detect_is_causal_mask(None, True)
    assert not of_layers._detect_is_causal_mask(mask, size=2)
    assert not of_layers._detect_is_causal_mask(mask, is_causal=False)
    of_attention = nn.modules.activation
    assert of_attention._arg_requires_grad(nn.Parameter(x))
    assert not any(map(of_attention._arg_requires_grad, (x, None)))
    assert of_attention._check_arg_device(x) and of_attention._check_arg_device(None)
    assert not of_attention._check_arg_device(x.to("meta"))
    assert not of_attention._is_make_fx_tracing()


def test_softmax_of_what_is_seen() -> None:
    rng = np.random.default_rng(0)
    scores = torch.tensor(rng.normal(size=(2, 3, 4, 5)), requires_grad=True)
    every = torch.tensor(rng.random((2, 3, 4, 5)) > 0.5)
    every[..., 0] = False
    for mask, kind, full in (
        (every, None, every),
        (every[0, 0], 0, every[0, 0]),
        (every[:, 0, 0], 1, every[:, 0, 0][:, None, None]),
    ):
        result = torch._masked_softmax(scores, mask, -1, kind)
        parts = np.where(full.numpy(), 0, np.exp(scores.detach().numpy()))
        np.testing.assert_allclose(result.detach(), parts / parts.sum(-1, keepdims=True))
    (grad,) = torch.autograd.grad(torch._masked_softmax(scores, every, 1)[:, 0].sum(), scores)
    assert not grad[every].any() and torch.isfinite(grad[~every]).all()
    with pytest.raises(RuntimeError, match="should be a boolean tensor"):
        torch._masked_softmax(scores, every.float())
    with pytest.raises(RuntimeError, match="mask_type == 1 mask shape should match"):
        torch._masked_softmax(scores, every[0, 0], -1, 1)
