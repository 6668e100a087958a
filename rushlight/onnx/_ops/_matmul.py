"""Products of matrices, einsum, attention, and distances."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import rushlight as rl
from rushlight.onnx._builder import Builder, Value
from rushlight.onnx._ops._pointwise import maximum, promoted
from rushlight.onnx._ops._shape import repeat_interleave
from rushlight.onnx._ops._table import converts


@converts("linear")
def linear(g: Builder, input: Value, weight: Value, bias: Value | None = None) -> Value:
    if input.rank == 2 and weight.rank == 2:
        return g.op("Gemm", input, weight, bias, transB=1)
    product = g.op("MatMul", input, g.transpose(weight, [1, 0][: weight.rank]))
    return product if bias is None else g.op("Add", product, bias)


@converts("matmul", "mm", "bmm", "mv", "dot", "vdot", "inner", "chain_matmul")
def matmul(g: Builder, input: Value, other: Value) -> Value:
    if g.node.target.__name__ == "inner" and other.rank > 1:
        g.refuse("inner of matrices has no ONNX form. Use matmul")
    return g.op("MatMul", *promoted(g, input, other))


@converts("addmm", "addmv", "baddbmm")
def addmm(
    g: Builder, input: Value, mat1: Value, mat2: Value, *, beta: Any = 1, alpha: Any = 1
) -> Value:
    product = g.op("MatMul", mat1, mat2)
    if alpha != 1:
        product = g.op("Mul", product, g.number(alpha, product))
    if beta != 1:
        input = g.op("Mul", input, g.number(beta, input))
    return g.op("Add", input, product)


@converts("outer", "ger")
def outer(g: Builder, input: Value, vec2: Value) -> Value:
    return g.op("Mul", g.unsqueeze(input, 1), g.unsqueeze(vec2, 0))


@converts("einsum")
def einsum(g: Builder, equation: str, operands: Any, path: Any = None) -> Value:
    if not isinstance(equation, str):
        g.refuse("only einsum with an equation as text has an ONNX form")
    return g.op("Einsum", *operands, equation=equation)


@converts("scaled_dot_product_attention")
def attention(
    g: Builder,
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Value:
    if dropout_p:
        g.refuse("it drops elements at random. Call eval() first")
    assert query.shape is not None and key.shape is not None
    if enable_gqa and query.shape[-3] != key.shape[-3]:
        heads, groups = query.shape[-3], key.shape[-3]
        if not (isinstance(heads, int) and isinstance(groups, int)):
            g.refuse("the number of heads may change")
        more = heads // groups
        key = replace(repeat_interleave(g, key, more, -3), shape=key.shape)
        value = replace(repeat_interleave(g, value, more, -3), shape=value.shape)
    width = query.shape[-1]
    if scale is None:
        if not isinstance(width, int):
            g.refuse("the width of the heads may change")
        scale = 1 / math.sqrt(width)
    order = list(range(key.rank))
    order[-2:] = order[:-3:-1]
    scaled = g.op("Mul", query, g.number(scale, query))
    scores = g.op("MatMul", scaled, g.transpose(key, order))  # (..., L, S)
    low = g.number(-math.inf, query)
    if is_causal:
        shape = g.ints([g.size(query, query.rank - 2), g.size(key, key.rank - 2)])
        ones = g.op("Expand", g.constant(1, rl.int32), shape)
        attn_mask = g.cast(g.op("Trilu", ones, g.constant(0), upper=0), rl.bool)
    if attn_mask is not None and attn_mask.dtype is rl.bool:
        scores = g.op("Where", attn_mask, scores, low, dtype=query.dtype)
    elif attn_mask is not None:
        scores = g.op("Add", scores, g.cast(attn_mask, query.dtype))
    weights = g.op("Softmax", scores, axis=-1)
    if attn_mask is not None and not is_causal:  # rows without keys give 0
        empty = g.op("IsNaN", weights, dtype=rl.bool)
        weights = g.op("Where", empty, g.number(0, query), weights, dtype=query.dtype)
    return g.op("MatMul", weights, value)


@converts("cosine_similarity")
def cosine_similarity(g: Builder, x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8) -> Value:
    def length(x: Value) -> Value:
        return maximum(g, g.reduce("ReduceL2", x, [dim], True), g.number(eps, x))

    product = g.op("Mul", g.op("Div", x1, length(x1)), g.op("Div", x2, length(x2)))
    return g.reduce("ReduceSum", product, [dim], False)


@converts("pairwise_distance")
def pairwise_distance(
    g: Builder, x1: Value, x2: Value, p: float = 2, eps: float = 1e-6, keepdim: bool = False
) -> Value:
    if p not in (1, 2):
        g.refuse(f"p={p} has no ONNX form")
    apart = g.op("Add", g.op("Sub", x1, x2), g.number(eps, x1))
    return g.reduce(f"ReduceL{int(p)}", apart, [-1], keepdim)


@converts("cdist")
def cdist(g: Builder, x1: Value, x2: Value, p: float = 2, compute_mode: str = "") -> Value:
    if p not in (1, 2):
        g.refuse(f"p={p} has no ONNX form")
    apart = g.op("Sub", g.unsqueeze(x1, -2), g.unsqueeze(x2, -3))
    return g.reduce(f"ReduceL{int(p)}", apart, [-1], False)
