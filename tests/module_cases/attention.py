"""Attention and the layers of transformers."""

import numpy as np

from module_cases import Case, floats

PADDING = np.array([[False, False, False, False, True], [False, True, False, False, False]])
LOW = np.where(PADDING, -np.inf, 0.5)
CAUSAL = np.triu(np.full((4, 4), -np.inf), 1)
LATER = np.triu(np.ones((4, 4), dtype=bool), 1)
SOME = np.random.RandomState(3).uniform(size=(4, 5)) < 0.3
BY_HEAD = np.random.RandomState(4).uniform(-1, 1, (4, 4, 5))

X, Y = floats(4, 2, 6), floats(5, 2, 6)
SDPA = "F.scaled_dot_product_attention"
ENCODER = "nn.TransformerEncoderLayer(6, 2, 5, dropout=0.0"
DECODER = "nn.TransformerDecoderLayer(6, 2, 5, dropout=0.0"

CASES = [
    Case(SDPA, floats(2, 3, 4, 5), floats(2, 3, 6, 5), floats(2, 3, 6, 7)),
    Case(f"lambda *a: {SDPA}(*a, is_causal=True)", *[floats(1, 2, 5, 4)] * 3),
    Case(f"lambda *a: {SDPA}(*a, is_causal=True, scale=0.3)", floats(3, 4), *[floats(5, 4)] * 2),
    Case(f"lambda *a, **k: {SDPA}(*a, **k)", *[floats(2, 1, 4, 3)] * 3, attn_mask=~LATER),
    Case(f"lambda *a, **k: ({SDPA}(*a, **k),)", *[floats(2, 1, 4, 3)] * 3, attn_mask=LATER),
    Case(f"lambda *a, **k: [{SDPA}(*a, **k)]", *[floats(2, 2, 4, 3)] * 3, attn_mask=floats(4, 4)),
    Case(
        f"lambda *a: {SDPA}(*a, enable_gqa=True)", floats(1, 4, 3, 2), *[floats(1, 2, 5, 2)] * 2
    ),
    Case("nn.MultiheadAttention(6, 2)", X, Y, Y),
    Case("nn.MultiheadAttention(6, 3, bias=False)", X, Y, floats(5, 2, 6), need_weights=False),
    Case("nn.MultiheadAttention(6, 2, batch_first=True)", *[floats(2, 5, 6)] * 3,
         key_padding_mask=PADDING, average_attn_weights=False),
    Case("nn.MultiheadAttention(6, 2, kdim=3, vdim=4)", X, floats(5, 2, 3), floats(5, 2, 4),
         attn_mask=SOME),
    Case("nn.MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True)", X, Y, Y,
         attn_mask=BY_HEAD, key_padding_mask=LOW),
    Case("nn.MultiheadAttention(6, 2, add_bias_kv=True)", X, Y, Y, attn_mask=SOME,
         need_weights=False),
    Case("nn.MultiheadAttention(6, 2, add_zero_attn=True)", floats(4, 6), *[floats(5, 6)] * 2,
         attn_mask=BY_HEAD[:2]),
    Case("nn.MultiheadAttention(6, 1)", *[floats(4, 2, 6)] * 3, attn_mask=CAUSAL, is_causal=True,
         need_weights=False),
    Case("nn.MultiheadAttention(6, 1, batch_first=True)", *[floats(4, 6)] * 3, attn_mask=LATER,
         is_causal=True),
    Case("lambda x, w, o: F.multi_head_attention_forward("
         "x, x, x, 6, 2, w, None, None, None, False, 0.5, o, None, training=False)",
         X, floats(18, 6), floats(6, 6)),
    Case("lambda x, w, o: F.multi_head_attention_forward("
         "x, w, w, 6, 2, None, None, None, None, False, 0.0, o, None, need_weights=False,"
         " use_separate_proj_weight=True, q_proj_weight=o, k_proj_weight=o, v_proj_weight=o)",
         X, floats(5, 2, 6), floats(6, 6)),
    Case("lambda x, w, s: F.multi_head_attention_forward("
         "x, x, x, 6, 2, w, w[:, 0], None, None, False, 0.0, w[:6], None, static_k=s, static_v=s)",
         X, floats(18, 6), floats(4, 7, 3)),
    Case(f"{ENCODER})", X),
    Case(f"{ENCODER}, activation='gelu', batch_first=True, norm_first=True)", floats(2, 5, 6),
         src_key_padding_mask=PADDING),
    Case(f"{ENCODER}, activation=nn.SiLU(), bias=False, layer_norm_eps=0.1)", X, src_mask=CAUSAL,
         is_causal=True),
    Case(f"{ENCODER}, activation=F.tanh).eval()", floats(4, 6), src_mask=LATER),
    Case(f"{DECODER})", X, Y, tgt_mask=CAUSAL, memory_key_padding_mask=PADDING),
    Case(f"{DECODER}, batch_first=True, norm_first=True, activation='gelu')", floats(2, 4, 6),
         floats(2, 5, 6), memory_mask=SOME, tgt_mask=LATER, tgt_is_causal=True),
    Case(f"nn.TransformerEncoder({ENCODER}), 2, nn.LayerNorm(6), enable_nested_tensor=False)", X,
         mask=CAUSAL),
    Case(f"nn.TransformerEncoder({ENCODER}), 1, None, False, False)", Y,
         src_key_padding_mask=PADDING),
    Case(f"nn.TransformerDecoder({DECODER}), 2)", X, Y, tgt_mask=LATER),
    Case("nn.Transformer(6, 2, 1, 1, 5, dropout=0.0)", Y, X, tgt_mask=CAUSAL),
    Case("nn.Transformer(6, 3, 1, 2, 4, 0.0, batch_first=True, norm_first=True)", floats(2, 5, 6),
         floats(2, 4, 6), src_key_padding_mask=PADDING, memory_key_padding_mask=PADDING),
    Case("lambda size: nn.Transformer.generate_square_subsequent_mask(size)", 3),
]  # fmt: skip
