"""Distances between the results of two networks, against NumPy."""

import numpy as np
import pytest

import rushlight as torch
from rushlight.ao.ns.fx import utils


def test_measures_are_their_formulas() -> None:
    x, y = np.random.default_rng(0).normal(size=(2, 4, 5)).astype("float32")
    a, b = torch.from_numpy(x), torch.from_numpy(y)
    error = np.linalg.norm(x - y) / np.linalg.norm(x)
    cosine = (x * y).sum() / np.linalg.norm(x) / np.linalg.norm(y)
    assert utils.compute_sqnr(a, b).item() == pytest.approx(-20 * np.log10(error), rel=1e-5)
    assert utils.compute_normalized_l2_error(a, b).item() == pytest.approx(error, rel=1e-5)
    assert utils.compute_cosine_similarity(a, b).item() == pytest.approx(cosine, rel=1e-5)
    both = utils.compute_sqnr((a, b), [b, a])
    assert both[0] == utils.compute_sqnr(a, b) and both[1] == utils.compute_sqnr(b, a)


def test_measures_take_quantized_results() -> None:
    x = torch.randn(8)
    small = torch.quantize_per_tensor(x, 0.02, 0, torch.qint8)
    assert utils.compute_sqnr(x, small) == utils.compute_sqnr(x, small.dequantize())
    assert utils.compute_sqnr(x.double(), x.double()) is None
