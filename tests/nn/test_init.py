"""nn.init: bounds, moments and structure of what each scheme fills in."""

import math

import numpy as np
import pytest
from scipy import stats

import rushlight as torch
from rushlight.nn import init


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.mark.parametrize(
    ("args", "gain"),
    [
        (("linear",), 1),
        (("conv2d",), 1),
        (("conv_transpose3d",), 1),
        (("sigmoid",), 1),
        (("tanh",), 5 / 3),
        (("relu",), math.sqrt(2)),
        (("leaky_relu",), math.sqrt(2 / (1 + 0.01**2))),
        (("leaky_relu", 0.2), math.sqrt(2 / 1.04)),
        (("selu",), 0.75),
    ],
)
def test_gains(args, gain) -> None:
    assert init.calculate_gain(*args) == pytest.approx(gain)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("maxout",), "Unsupported nonlinearity 'maxout'"),
        (("leaky_relu", "x"), "not a valid number"),
    ],
)
def test_unknown_gains_are_errors(args, message) -> None:
    with pytest.raises(ValueError, match=message):
        init.calculate_gain(*args)


SHAPE = (64, 32, 3, 3)  # fan_in 288, fan_out 576


@pytest.mark.parametrize(
    ("fill", "variance"),
    [
        (lambda w: init.xavier_uniform_(w, gain=2), 4 * 2 / (288 + 576)),
        (lambda w: init.xavier_normal_(w, gain=2), 4 * 2 / (288 + 576)),
        (lambda w: init.kaiming_uniform_(w), 2 / 288),
        (lambda w: init.kaiming_normal_(w), 2 / 288),
        (lambda w: init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu"), 2 / 576),
        (lambda w: init.kaiming_uniform_(w, a=0.5), 2 / 1.25 / 288),
        (lambda w: init.uniform_(w, -3, 3), 3.0),
        (lambda w: init.normal_(w, 0, 0.5), 0.25),
    ],
)
def test_schemes_have_the_published_variance(fill, variance) -> None:
    w = torch.empty(SHAPE)
    assert fill(w) is w
    values = w.numpy()
    assert values.mean() == pytest.approx(0, abs=4 * math.sqrt(variance / values.size))
    assert values.var() == pytest.approx(variance, rel=0.05)


@pytest.mark.parametrize(
    ("fill", "bound"),
    [
        (init.xavier_uniform_, math.sqrt(6 / (288 + 576))),
        (init.kaiming_uniform_, math.sqrt(6 / 288)),
    ],
)
def test_uniform_schemes_stay_within_their_bound(fill, bound) -> None:
    largest = np.abs(fill(torch.empty(SHAPE)).numpy()).max()
    assert 0.99 * bound < largest <= bound


def test_truncated_normal_has_the_distribution_between_its_cutoffs() -> None:
    w = init.trunc_normal_(torch.empty(20_000), mean=1.0, std=2.0, a=-1.0, b=4.0)
    values = w.numpy()
    assert values.min() >= -1
    assert values.max() <= 4
    reference = stats.truncnorm((-1 - 1) / 2, (4 - 1) / 2, loc=1, scale=2)
    assert stats.kstest(values, reference.cdf).pvalue > 0.01


@pytest.mark.filterwarnings("ignore:trunc_normal_")
@pytest.mark.parametrize(
    ("mean", "a", "b"), [(0, 3, 4), (0, -6, -5), (0, 5, 9), (10, -2, 2), (-10, -2, 2), (90, -2, 2)]
)
def test_truncated_normal_keeps_its_distribution_far_from_the_mean(mean, a, b) -> None:
    w = init.trunc_normal_(torch.empty(20_000), mean=mean, a=a, b=b).numpy()
    assert w.min() >= a and w.max() <= b
    if mean == 90:  # beyond what a float64 can tell: all at the cutoff that is nearest
        assert (w == b).all()
    else:
        assert stats.kstest(w, stats.truncnorm(a - mean, b - mean, loc=mean).cdf).pvalue > 0.01


def test_truncated_normal_warns_when_the_cutoffs_are_far_from_the_mean() -> None:
    with pytest.warns(UserWarning, match="more than 2 std"):
        init.trunc_normal_(torch.empty(2), mean=9.0)


def test_generator_decides_the_numbers() -> None:
    def draw(fill):
        return fill(torch.empty(4, 6), generator=torch.Generator().manual_seed(5)).tolist()

    for fill in (
        init.uniform_,
        init.normal_,
        init.trunc_normal_,
        init.xavier_uniform_,
        init.xavier_normal_,
        init.kaiming_uniform_,
        init.kaiming_normal_,
        init.orthogonal_,
        lambda w, generator: init.sparse_(w, 0.5, generator=generator),
    ):
        assert draw(fill) == draw(fill)


def test_constants() -> None:
    w = torch.empty(2, 3)
    assert init.constant_(w, 0.5).numpy().tolist() == [[0.5] * 3] * 2
    assert init.ones_(w).numpy().tolist() == [[1] * 3] * 2
    assert init.zeros_(w).numpy().tolist() == [[0] * 3] * 2


def test_eye_is_the_identity_matrix() -> None:
    assert np.array_equal(init.eye_(torch.empty(3, 5)).numpy(), np.eye(3, 5))


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("groups", [1, 2])
def test_dirac_weights_copy_channels(dims, groups) -> None:
    w = init.dirac_(torch.empty(4, 3, *[3] * dims), groups=groups).numpy()
    expected = np.zeros_like(w)
    for channel in range(4):
        within = channel % (4 // groups)
        if within < 3:
            expected[(channel, within, *[1] * dims)] = 1
    assert np.array_equal(w, expected)


@pytest.mark.parametrize("shape", [(5, 5), (3, 7), (7, 3), (4, 2, 3)])
def test_orthogonal_weights_have_orthonormal_rows_or_columns(shape) -> None:
    w = init.orthogonal_(torch.empty(shape, dtype=torch.float64), gain=2).numpy() / 2
    w = w.reshape(shape[0], -1)
    gram = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    np.testing.assert_allclose(gram, np.eye(len(gram)), atol=1e-12)


def test_orthogonal_weights_are_uniform_over_rotations() -> None:
    # QR without the correction of signs always gives columns of one orientation.
    signs = [init.orthogonal_(torch.empty(2, 2))[0, 0].item() > 0 for _ in range(200)]
    assert 70 < sum(signs) < 130


def test_sparse_columns_have_their_share_of_zeros() -> None:
    w = init.sparse_(torch.empty(10, 50), sparsity=0.25, std=0.1).numpy()
    assert ((w == 0).sum(0) == 3).all()  # rounded up from 2.5
    assert w[w != 0].std() == pytest.approx(0.1, rel=0.15)
    assert len({tuple(column) for column in (w == 0).T}) > 10


@pytest.mark.parametrize(
    ("fill", "shape"),
    [
        (init.eye_, (3,)),
        (init.dirac_, (3, 3)),
        (lambda w: init.dirac_(w, groups=2), (3, 1, 1)),
        (init.xavier_uniform_, (3,)),
        (init.xavier_normal_, (3,)),
        (init.kaiming_uniform_, (3,)),
        (init.kaiming_normal_, (3,)),
        (lambda w: init.kaiming_normal_(w, mode="fan"), (3, 3)),
        (init.orthogonal_, (3,)),
        (lambda w: init.sparse_(w, 0.5), (3,)),
    ],
)
def test_unsuitable_shapes_and_modes_are_errors(fill, shape) -> None:
    with pytest.raises(ValueError, match=r"dimension|groups|not supported"):
        fill(torch.empty(shape))


@pytest.mark.parametrize("fill", [init.kaiming_uniform_, init.kaiming_normal_])
def test_empty_weights_stay_as_they_are_with_a_warning(fill) -> None:
    with pytest.warns(UserWarning, match="zero-element"):
        assert fill(torch.empty(0, 3)).numel() == 0


def test_parameters_are_filled_outside_autograd() -> None:
    w = torch.nn.Parameter(torch.empty(4, 4))
    for name in init.__all__:
        if name.endswith("_") and name != "dirac_":
            arguments = {"constant_": (1.0,), "sparse_": (0.5,)}.get(name, ())
            getattr(init, name)(w, *arguments)
            assert w.is_leaf
            assert w.requires_grad


def test_names_without_underscore_warn_and_still_work() -> None:
    with pytest.warns(FutureWarning, match="in favor of nn.init.constant_"):
        assert init.constant(torch.empty(1), 2.0).item() == 2


def test_libraries_ask_for_the_fan_of_a_mode() -> None:
    weight = torch.empty(4, 3, 2, 2)
    assert [init._calculate_correct_fan(weight, mode) for mode in ("fan_in", "FAN_OUT")] == [12, 16]
    with pytest.raises(ValueError, match="not supported"):
        init._calculate_correct_fan(weight, "fan")
