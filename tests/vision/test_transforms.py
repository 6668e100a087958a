"""Transforms of images: what Pillow or NumPy makes of the same picture, draws, mistakes."""

import colorsys

import numpy as np
import pytest
from PIL import Image, ImageEnhance, ImageOps

import rushlight as torch
from rushlight.vision import transforms
from rushlight.vision.transforms import InterpolationMode
from rushlight.vision.transforms import functional as F

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (20, 30, 3), dtype=np.uint8)  # (H, W, C)
PICTURE = Image.fromarray(PIXELS)
SMOOTH = np.add.outer(np.arange(20) * 5, np.arange(30) * 3)[..., None] + np.array([0, 20, 40])
SMOOTH = SMOOTH.astype(np.uint8)


def tensor_of(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1)))


def array_of(image) -> np.ndarray:
    if isinstance(image, torch.Tensor):
        return image.numpy().transpose(1, 2, 0)
    return np.asarray(image)


BOTH = pytest.mark.parametrize("image", [PICTURE, tensor_of(PIXELS)], ids=["pillow", "tensor"])


@BOTH
def test_flips_and_crops_are_slices(image) -> None:
    np.testing.assert_array_equal(array_of(F.hflip(image)), PIXELS[:, ::-1])
    np.testing.assert_array_equal(array_of(F.vflip(image)), PIXELS[::-1])
    np.testing.assert_array_equal(array_of(F.crop(image, 2, 3, 5, 6)), PIXELS[2:7, 3:9])
    np.testing.assert_array_equal(array_of(F.center_crop(image, [10, 20])), PIXELS[5:15, 5:25])
    corners = F.five_crop(image, 4)
    np.testing.assert_array_equal(array_of(corners[3]), PIXELS[-4:, -4:])
    np.testing.assert_array_equal(array_of(F.ten_crop(image, 4)[5]), PIXELS[:4, :-5:-1])


@BOTH
def test_what_lies_outside_of_an_image_is_zero(image) -> None:
    padded = np.pad(PIXELS, ((5, 5), (5, 5), (0, 0)))
    np.testing.assert_array_equal(array_of(F.crop(image, -5, -5, 30, 40)), padded)
    np.testing.assert_array_equal(array_of(F.center_crop(image, [30, 40])), padded)


@BOTH
@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "symmetric"])
def test_borders_are_numpys(image, mode) -> None:
    values = {"constant_values": 7} if mode == "constant" else {}
    for padding, kept in (([1, 2, 3, 4], PIXELS), ([4, -1, -2, 3], PIXELS[1:, :-2])):
        left, top, right, bottom = (max(width, 0) for width in padding)
        expected = np.pad(kept, ((top, bottom), (left, right), (0, 0)), mode=mode, **values)
        padded = F.pad(image, padding, fill=7 if values else 0, padding_mode=mode)
        np.testing.assert_array_equal(array_of(padded), expected)


@pytest.mark.parametrize("size", [(7, 9), (40, 50), (20, 8)])
@pytest.mark.parametrize("mode", [InterpolationMode.BILINEAR, InterpolationMode.BICUBIC])
def test_tensors_are_resized_as_pillow_does_it(size, mode) -> None:
    number = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
    expected = np.asarray(PICTURE.resize(size[::-1], number[mode.value])).astype(int)
    for layout in (tensor_of(PIXELS), torch.from_numpy(PIXELS).permute(2, 0, 1)):
        resized = F.resize(layout, size, mode)
        assert resized.dtype == torch.uint8
        assert np.abs(array_of(resized).astype(int) - expected).max() <= 2
    np.testing.assert_array_equal(array_of(F.resize(PICTURE, size, mode)), expected)


def test_one_size_is_the_shorter_side() -> None:
    assert F.resize(PICTURE, 10).size == (15, 10)
    assert F.resize(tensor_of(PIXELS), [10]).shape == (3, 10, 15)
    assert F.resize(tensor_of(PIXELS), 10, max_size=12).shape == (3, 8, 12)


def test_a_rotation_by_a_quarter_moves_pixels() -> None:
    image = tensor_of(PIXELS)
    expected = np.rot90(PIXELS)
    np.testing.assert_array_equal(array_of(F.rotate(image, 90, expand=True)), expected)
    np.testing.assert_array_equal(array_of(F.rotate(PICTURE, 90, expand=True)), expected)
    np.testing.assert_array_equal(array_of(F.rotate(image, 180)), PIXELS[::-1, ::-1])


@pytest.mark.parametrize("mode", [InterpolationMode.NEAREST, InterpolationMode.BILINEAR])
@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("rotate", (25,)),
        ("affine", (10, [3, -2], 1.2, [8.0, 3.0])),
        (
            "perspective",
            ([[0, 0], [29, 0], [29, 19], [0, 19]], [[2, 1], [27, 2], [29, 17], [0, 18]]),
        ),
    ],
)
def test_warps_of_tensors_look_like_those_of_pillow(name, args, mode) -> None:
    """On a smooth picture, away from the border, where they differ in the half pixels."""
    function = getattr(F, name)
    ours = array_of(function(tensor_of(SMOOTH), *args, interpolation=mode)).astype(int)
    theirs = array_of(function(Image.fromarray(SMOOTH), *args, interpolation=mode)).astype(int)
    inside = (ours > 0).all(-1) & (theirs > 0).all(-1)
    assert inside.mean() > 0.4
    assert np.median(np.abs(ours - theirs)[inside]) <= 1


def test_the_fill_is_what_lies_outside() -> None:
    moved = F.affine(tensor_of(PIXELS), 0, [10, 0], 1.0, 0.0, fill=[1, 2, 3])
    assert moved[:, :, :10].float().mean((1, 2)).tolist() == [1, 2, 3]
    np.testing.assert_array_equal(array_of(moved)[:, 10:], PIXELS[:, :-10])


@pytest.mark.parametrize(
    ("name", "enhancer"),
    [
        ("adjust_brightness", ImageEnhance.Brightness),
        ("adjust_contrast", ImageEnhance.Contrast),
        ("adjust_saturation", ImageEnhance.Color),
        ("adjust_sharpness", ImageEnhance.Sharpness),
    ],
)
@pytest.mark.parametrize("factor", [0.0, 0.5, 1.0, 1.6])
def test_adjustments_are_those_of_pillow(name, enhancer, factor) -> None:
    expected = np.asarray(enhancer(PICTURE).enhance(factor)).astype(int)
    np.testing.assert_array_equal(array_of(getattr(F, name)(PICTURE, factor)), expected)
    ours = array_of(getattr(F, name)(tensor_of(PIXELS), factor)).astype(int)
    assert np.abs(ours - expected).max() <= 2


def test_hues_turn_as_colorsys_says() -> None:
    turned = array_of(F.adjust_hue(tensor_of(PIXELS).float() / 255, 0.3))
    for row, column in [(0, 0), (3, 7), (19, 29), (11, 2)]:
        h, s, v = colorsys.rgb_to_hsv(*(PIXELS[row, column] / 255))
        expected = colorsys.hsv_to_rgb((h + 0.3) % 1, s, v)
        np.testing.assert_allclose(turned[row, column], expected, atol=1e-5)
    same = F.adjust_hue(tensor_of(PIXELS), 0.0)
    assert (same.int() - tensor_of(PIXELS).int()).abs().max() <= 1


@pytest.mark.parametrize(
    ("name", "args", "theirs"),
    [
        ("invert", (), ImageOps.invert),
        ("posterize", (3,), lambda image: ImageOps.posterize(image, 3)),
        ("solarize", (100,), lambda image: ImageOps.solarize(image, 100)),
        ("autocontrast", (), ImageOps.autocontrast),
        ("equalize", (), ImageOps.equalize),
    ],
)
@pytest.mark.parametrize("pixels", [PIXELS, SMOOTH], ids=["noise", "smooth"])
def test_counting_of_levels_is_that_of_pillow(name, args, theirs, pixels) -> None:
    expected = np.asarray(theirs(Image.fromarray(pixels))).astype(int)
    ours = array_of(getattr(F, name)(tensor_of(pixels), *args)).astype(int)
    assert np.abs(ours - expected).max() <= 1


def test_a_blur_is_a_weighted_sum() -> None:
    spot = torch.zeros(1, 9, 9)
    spot[0, 4, 4] = 1.0
    x = np.exp(-0.5 * (np.arange(-2, 3) / 1.5) ** 2)
    y = np.exp(-0.5 * (np.arange(-1, 2) / 0.7) ** 2)
    expected = np.outer(y / y.sum(), x / x.sum())
    blurred = F.gaussian_blur(spot, [5, 3], [1.5, 0.7])
    np.testing.assert_allclose(blurred[0, 3:6, 2:7].numpy(), expected, atol=1e-6)
    assert blurred.sum() == pytest.approx(1, abs=1e-5)


def test_gray_is_the_luma() -> None:
    gray = F.rgb_to_grayscale(tensor_of(PIXELS))
    expected = PIXELS @ np.array([0.2989, 0.587, 0.114])
    assert np.abs(gray[0].numpy() - expected).max() < 1.001
    assert F.rgb_to_grayscale(PICTURE, 3).mode == "RGB"


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "LA", "CMYK", "YCbCr", "1", "I", "F", "P"])
def test_pixels_of_all_modes_become_tensors(mode) -> None:
    picture = PICTURE.convert(mode)
    expected = np.asarray(picture)
    expected = expected[..., None] if expected.ndim == 2 else expected
    np.testing.assert_array_equal(array_of(F.pil_to_tensor(picture)), expected)
    scaled = F.to_tensor(picture)
    wide = mode in ("I", "F")
    wanted = expected if wide else expected.astype(np.float32) / (1 if mode == "1" else 255)
    np.testing.assert_allclose(array_of(scaled), wanted, atol=1e-7)
    assert scaled.is_contiguous()


def test_tensors_of_pixels_can_be_written_to() -> None:
    image = F.pil_to_tensor(PICTURE)
    image[0, 0, 0] = 7
    assert np.asarray(PICTURE)[0, 0, 0] == PIXELS[0, 0, 0]


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_tensors_become_pictures_and_come_back(channels) -> None:
    image = torch.randint(0, 256, (channels, 5, 6), dtype=torch.uint8)
    picture = F.to_pil_image(image)
    assert picture.mode == ["L", "LA", "RGB", "RGBA"][channels - 1]
    assert torch.equal(F.pil_to_tensor(picture), image)
    assert torch.equal(F.pil_to_tensor(F.to_pil_image(image.float() / 255)), image)


def test_dtypes_are_scaled_to_their_ranges() -> None:
    image = torch.tensor([0, 1, 255], dtype=torch.uint8)
    assert F.convert_image_dtype(image, torch.float64).tolist() == [0, 1 / 255, 1]
    assert F.convert_image_dtype(image, torch.int16).tolist() == [0, 128, 32640]
    assert F.convert_image_dtype(image, torch.uint16).tolist() == [0, 256, 65280]
    for dtype in (torch.float32, torch.int16, torch.int32, torch.uint16):
        there = F.convert_image_dtype(image, dtype)
        assert torch.equal(F.convert_image_dtype(there, torch.uint8), image)
    with pytest.raises(RuntimeError, match="cannot be scaled"):
        F.convert_image_dtype(torch.rand(3), torch.int32)


@pytest.mark.parametrize("image", [PICTURE, tensor_of(PIXELS)], ids=["pillow", "tensor"])
def test_a_seed_repeats_an_augmentation(image) -> None:
    augment = transforms.Compose(
        [
            transforms.RandomResizedCrop(32),
            transforms.RandomHorizontalFlip(),
            transforms.ColorJitter(0.4, 0.4, 0.4, 0.1),
            transforms.RandomAffine(20, (0.1, 0.1), (0.5, 1.5), 10),
            transforms.RandomPerspective(),
            transforms.RandomChoice([transforms.RandAugment(), transforms.AugMix()]),
            transforms.RandomOrder([transforms.RandomInvert(), transforms.RandomRotation(30)]),
            transforms.RandomApply([transforms.GaussianBlur(3)]),
            transforms.AutoAugment(),
            transforms.TrivialAugmentWide(),
            transforms.ElasticTransform(),
        ]
    )

    def run(seed: int) -> list[np.ndarray]:
        torch.manual_seed(seed)
        return [array_of(augment(image)) for _ in range(4)]

    for first, again in zip(run(3), run(3), strict=True):
        np.testing.assert_array_equal(first, again)
    assert any((a != b).any() for a, b in zip(run(3), run(4), strict=True))


def test_draws_lie_between_their_bounds() -> None:
    torch.manual_seed(0)
    image = torch.zeros(3, 40, 60)
    windows = [
        transforms.RandomResizedCrop.get_params(image, (0.1, 0.5), (0.5, 2)) for _ in range(200)
    ]
    for top, left, height, width in windows:
        assert top >= 0 and left >= 0 and top + height <= 40 and left + width <= 60
        assert 0.08 < height * width / 2400 < 0.53
    assert len({window[:2] for window in windows}) > 100
    angles = [transforms.RandomRotation.get_params((-5, 5)) for _ in range(100)]
    assert -5 <= min(angles) < -3 and 3 < max(angles) <= 5
    tall = transforms.RandomResizedCrop.get_params(torch.zeros(3, 90, 3), (0.9, 1), (1, 1))
    assert tall == (43, 0, 3, 3)


@pytest.mark.parametrize(
    "run",
    [
        lambda x: F.resize(x, [5, 4]),
        lambda x: F.pad(F.crop(F.hflip(x), 1, 1, 5, 5), 2, padding_mode="symmetric"),
        lambda x: F.rotate(x, 20, InterpolationMode.BILINEAR, fill=0.5),
        lambda x: F.normalize(x, [0.1, 0.2, 0.3], [0.5, 0.6, 0.7]),
        lambda x: F.gaussian_blur(x, 3),
        lambda x: F.adjust_sharpness(x, 1.5),
        lambda x: F.adjust_brightness(x, 0.9),
        lambda x: F.adjust_contrast(x, 1.1),
        lambda x: F.adjust_saturation(x, 1.1),
        lambda x: F.adjust_gamma(x, 1.5, 0.9),
        lambda x: F.autocontrast(x),
        lambda x: F.invert(F.rgb_to_grayscale(x)),
    ],
)
def test_gradients_pass_through(run) -> None:
    torch.manual_seed(0)
    image = (torch.rand(3, 7, 6, dtype=torch.float64) * 0.4 + 0.3).requires_grad_()
    assert torch.autograd.gradcheck(run, (image,), eps=1e-6, atol=1e-5)


def test_gradients_pass_through_hues() -> None:
    image = torch.rand(3, 7, 6, requires_grad=True)
    F.adjust_hue(image, 0.2).sum().backward()
    assert image.grad is not None and image.grad.isfinite().all() and image.grad.abs().sum() > 0


def test_erasing_writes_one_window() -> None:
    torch.manual_seed(0)
    image = torch.ones(3, 20, 20)
    erased = transforms.RandomErasing(p=1.0, scale=(0.2, 0.2), ratio=(1, 1))(image)
    rows, columns = (erased[0] == 0).nonzero().T
    assert (rows.max() - rows.min() + 1) * (columns.max() - columns.min() + 1) == len(rows) == 81
    assert image.min() == 1


def test_a_whitening_has_unit_covariance() -> None:
    torch.manual_seed(0)
    images = torch.randn(500, 1, 2, 2) @ torch.tensor([[2.0, 1.0], [0.0, 0.5]])
    flat = images.reshape(500, 4)
    values, vectors = torch.linalg.eigh(torch.cov(flat.T))
    matrix = vectors @ torch.diag(values.rsqrt()) @ vectors.T
    whiten = transforms.LinearTransformation(matrix, flat.mean(0))
    white = torch.cat([whiten(image).reshape(1, 4) for image in images])
    np.testing.assert_allclose(torch.cov(white.T).numpy(), np.eye(4), atol=1e-3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.hflip("a"), TypeError, "horizontal_flip: got str"),
        (lambda: F.resize(PICTURE, 5, "bilinear"), TypeError, "must be an InterpolationMode"),
        (lambda: F.resize(PICTURE, [1, 2, 3]), ValueError, "3 numbers"),
        (lambda: F.resize(PICTURE, 5, max_size=4), ValueError, "must be greater"),
        (lambda: F.resize(torch.zeros(3, 0, 4), [2, 2]), RuntimeError, "no pixel"),
        (lambda: F.resize(torch.zeros(3, 4, 4), 2, InterpolationMode.BOX), ValueError, "'box'"),
        (lambda: F.pad(PICTURE, [1, 2, 3]), ValueError, "3 numbers"),
        (lambda: F.pad(torch.zeros(1, 2, 2), 3, padding_mode="symmetric"), ValueError, "wider"),
        (lambda: F.rotate(torch.zeros(3, 4, 4), 9, fill=[1, 2]), ValueError, "2 values"),
        (lambda: F.adjust_hue(PICTURE, 0.6), ValueError, "in .-0.5, 0.5."),
        (lambda: F.adjust_gamma(PICTURE, -1), ValueError, "not be negative"),
        (lambda: F.adjust_contrast(torch.zeros(2, 4, 4), 1.0), TypeError, "one or three channels"),
        (lambda: F.equalize(torch.zeros(3, 4, 4)), TypeError, "must be torch.uint8"),
        (lambda: F.normalize(tensor_of(PIXELS), [0], [1]), TypeError, "floating-point"),
        (lambda: F.normalize(torch.zeros(1, 2, 2), [0], [0]), ValueError, "Zero cannot"),
        (lambda: F.to_tensor(np.zeros((1, 2, 3, 4))), ValueError, "4 dimensions"),
        (lambda: F.to_pil_image(torch.zeros(5, 2, 2)), ValueError, "at most four channels"),
        (lambda: F.to_pil_image(torch.zeros(3, 2, 2, dtype=torch.int64)), TypeError, "no mode"),
        (lambda: F.perspective(PICTURE, [[0, 0]], [[1, 1]]), ValueError, "four corners"),
        (lambda: F.erase(PICTURE, 0, 0, 1, 1, torch.zeros(1)), TypeError, "must be a tensor"),
        (lambda: transforms.RandomCrop(50)(PICTURE), ValueError, "pad_if_needed"),
    ],
)
def test_mistakes_are_named(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()


def test_the_antialiasing_of_pillow_cannot_be_turned_off() -> None:
    with pytest.warns(UserWarning, match="Pillow always averages"):
        F.resize(PICTURE, 5, antialias=False)
