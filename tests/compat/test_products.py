"""Scaled products of 8-bit floats, grouped products, and the inner names beside them."""

import pytest

import rushlight

pytorch = pytest.importorskip("torch")
FRAMEWORKS = (rushlight, pytorch)


def grid(torch, *shape, scale=1.7):
    count = 1
    for n in shape:
        count *= n
    return torch.sin(torch.arange(float(count)) * scale).view(shape)


def float8(torch, kinds):
    a = grid(torch, 16, 32).to(getattr(torch, kinds[0]))
    b = (grid(torch, 48, 32, scale=0.7) * 3).to(getattr(torch, kinds[1])).t()
    return a, b


KINDS = [
    ("float8_e4m3fn", "float8_e4m3fn"),
    ("float8_e5m2", "float8_e4m3fn"),
    ("float8_e5m2", "float8_e5m2"),
]
DTYPES = [None, "float32", "bfloat16", "float16", "float8_e4m3fn", "float8_e5m2"]


def near(mine, other, dtype):
    tolerance = {"bfloat16": 8e-3, "float16": 1e-3, "float32": 1e-5}.get(dtype, 0.26)
    assert str(mine.dtype) == str(other.dtype)
    got = mine.float().flatten().tolist()
    assert got == pytest.approx(other.float().flatten().tolist(), rel=tolerance, abs=1e-4)


@pytest.mark.parametrize("kinds", KINDS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_scaled_products(kinds, dtype):
    results = []
    for torch in FRAMEWORKS:
        a, b = float8(torch, kinds)
        one, two = torch.tensor(0.5), torch.tensor([[2.5]])
        rows, columns = torch.arange(1.0, 17).view(16, 1) / 8, torch.arange(1.0, 49).view(1, 48) / 9
        # Without out_dtype PyTorch leaves scale_result out on the CPU.
        divided = {} if dtype is None else {"scale_result": torch.tensor(2.0)}
        options = {"out_dtype": None if dtype is None else getattr(torch, dtype)}
        bias = grid(torch, 48)
        with_bias = dtype in ("float32", "bfloat16", "float16")
        recipes = torch.nn.functional.ScalingType
        results.append(
            [
                torch._scaled_mm(a, b, one, two, **options),
                torch._scaled_mm(a, b, one, two, **divided, **options),
                torch._scaled_mm(a, b, rows, columns, use_fast_accum=True, **options),
                *([torch._scaled_mm(a, b, one, two, bias, **options)] if with_bias else []),
                torch.nn.functional.scaled_mm(
                    a,
                    b,
                    rows,
                    recipes.RowWise,
                    [columns],
                    [recipes.RowWise],
                    output_dtype=options["out_dtype"],
                    contraction_dim=(1, 0),
                ),
                torch.nn.functional.scaled_mm(
                    a, b, one, recipes.TensorWise, two, recipes.TensorWise
                ),
            ]
        )
    for mine, other in zip(*results, strict=True):
        near(mine, other, "bfloat16" if "bfloat16" in str(other.dtype) else dtype)


def test_what_scaled_products_refuse():
    for torch in FRAMEWORKS:
        a, b = float8(torch, KINDS[0])
        one, rows, columns = torch.tensor(1.0), torch.ones(16, 1), torch.ones(1, 48)
        recipes = torch.nn.functional.ScalingType
        swizzle = torch.nn.functional.SwizzleType.SWIZZLE_32_4_4
        wrong = "Invalid scaling configuration"
        cases = [
            (ValueError, wrong, (a, b, one, columns)),
            (ValueError, wrong, (a, b, torch.ones(16, 2), columns)),
            (RuntimeError, "shapes cannot be multiplied", (a, b.t(), one, one)),
            (RuntimeError, "mat1 must be a matrix", (a[None], b, one, one)),
            (RuntimeError, "Bias must be size 48 but got 3", (a, b, one, one, torch.ones(3))),
        ]
        if torch is rushlight:  # what PyTorch says of wrong dtypes depends on the processor
            cases += [
                (ValueError, wrong, (a.float(), b.float(), one, one)),
                (ValueError, wrong, (a, b, one.double(), one)),
            ]
        for error, message, args in cases:
            with pytest.raises(error, match=message):
                torch._scaled_mm(*args)
        cases = [
            (wrong, (a, b, rows, recipes.RowWise, one, recipes.TensorWise)),
            (wrong, (a, b, [one] * 2, [recipes.TensorWise] * 2, one, recipes.TensorWise)),
            ("must have 1 Float element", (a, b, rows, recipes.TensorWise, one,
                                           recipes.TensorWise)),
            ("swizzle", (a, b, one, recipes.TensorWise, one, recipes.TensorWise, swizzle, swizzle)),
            ("contraction", (a, b, one, recipes.TensorWise, one, recipes.TensorWise, None, None,
                             None, torch.bfloat16, (0, 1))),
        ]  # fmt: skip
        for message, args in cases:
            with pytest.raises(ValueError, match=message):
                torch.nn.functional.scaled_mm(*args)


@pytest.mark.parametrize("dims", [(2, 3), (3, 3), (3, 2), (2, 2)])
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_grouped_products_and_their_gradients(dims, dtype):
    shapes = {(2, 3): ((24, 16), (3, 16, 8)), (3, 3): ((3, 8, 16), (3, 16, 8)),
              (3, 2): ((3, 8, 16), (16, 24)), (2, 2): ((8, 24), (24, 16))}[dims]  # fmt: skip
    results = []
    for torch in FRAMEWORKS:
        a, b = (
            grid(torch, *shape, scale=s).to(getattr(torch, dtype)).requires_grad_()
            for shape, s in zip(shapes, (1.7, 0.7), strict=True)
        )
        # The last group ends where the tensor does: behind it PyTorch leaves what was there.
        ends = None if dims == (3, 3) else torch.tensor([8, 16, 24], dtype=torch.int32)
        # PyTorch wants columns to lie beside each other in memory.
        result = torch._grouped_mm(a, b.transpose(-1, -2).contiguous().transpose(-1, -2), ends)
        result.float().square().sum().backward()
        results.append([result.detach(), a.grad, b.grad])
    for mine, other in zip(*results, strict=True):
        assert mine.dtype == getattr(rushlight, dtype) and tuple(mine.shape) == tuple(other.shape)
        tolerance = 3e-2 if dtype == "bfloat16" else 1e-4
        got, expected = mine.float().flatten().tolist(), other.float().flatten().tolist()
        assert got == pytest.approx(expected, rel=tolerance, abs=tolerance * 4)


def test_gradients_of_softmax_by_its_result():
    results = []
    for torch in FRAMEWORKS:
        x, g = grid(torch, 3, 4), grid(torch, 3, 4, scale=0.3)
        results.append(
            [
                torch._softmax_backward_data(g, x.softmax(1), 1, torch.float32),
                torch._log_softmax_backward_data(g, x.log_softmax(-1), -1, torch.float32),
                torch._shape_as_tensor(x),
            ]
        )
    for mine, other in zip(*results, strict=True):
        near(mine, other, "float32")
