"""Pictures go to files and back; Pillow is the oracle."""

import contextlib
import io

import numpy as np
import pytest
from PIL import Image

import rushlight as torch
from rushlight.vision import io as vio

RNG = np.random.default_rng(0)
PIXELS = RNG.integers(0, 256, (3, 6, 7), dtype=np.uint8)
PICTURE = Image.fromarray(PIXELS.transpose(1, 2, 0))


def encoded(image: Image.Image, format: str, **options) -> torch.Tensor:
    file = io.BytesIO()
    image.save(file, format=format, **options)
    return torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8)


def test_png_keeps_all_pixels(tmp_path) -> None:
    vio.write_png(torch.from_numpy(PIXELS), tmp_path / "a.png")
    np.testing.assert_array_equal(vio.read_image(tmp_path / "a.png").numpy(), PIXELS)
    np.testing.assert_array_equal(
        np.asarray(Image.open(tmp_path / "a.png")).transpose(2, 0, 1), PIXELS
    )


def test_jpeg_is_what_pillow_writes_and_reads() -> None:
    data = vio.encode_jpeg(torch.from_numpy(PIXELS), quality=60)
    assert torch.equal(data, encoded(PICTURE, "JPEG", quality=60))
    expected = np.asarray(Image.open(io.BytesIO(data.numpy().tobytes())))
    np.testing.assert_array_equal(vio.decode_jpeg(data).numpy(), expected.transpose(2, 0, 1))
    assert [t.shape for t in vio.decode_jpeg([data, data])] == [(3, 6, 7)] * 2


def test_gray_pictures_have_one_channel() -> None:
    gray = torch.from_numpy(PIXELS[:1])
    assert torch.equal(vio.decode_image(vio.encode_png(gray)), gray)


@pytest.mark.parametrize(
    ("mode", "pillow"), [("GRAY", "L"), ("GRAY_ALPHA", "LA"), ("RGB", "RGB"), ("RGBA", "RGBA")]
)
def test_modes_choose_the_channels(mode, pillow) -> None:
    data = encoded(PICTURE, "PNG")
    expected = np.asarray(PICTURE.convert(pillow))
    expected = expected[None] if expected.ndim == 2 else expected.transpose(2, 0, 1)
    for given in (mode, mode.lower(), vio.ImageReadMode[mode]):
        np.testing.assert_array_equal(vio.decode_png(data, given).numpy(), expected)


def test_a_palette_gives_indices_or_colors() -> None:
    palette = PICTURE.quantize(8)
    data = encoded(palette, "PNG")
    np.testing.assert_array_equal(vio.decode_image(data).numpy()[0], np.asarray(palette))
    expected = np.asarray(palette.convert("RGB")).transpose(2, 0, 1)
    np.testing.assert_array_equal(vio.decode_image(data, "RGB").numpy(), expected)


def test_sixteen_bits_stay() -> None:
    deep = np.array([[0, 1, 65535], [256, 40000, 3]], dtype=np.uint16)
    data = encoded(Image.fromarray(deep), "PNG")
    for mode, channels in (("UNCHANGED", 1), ("GRAY", 1), ("RGB", 3), ("RGBA", 4)):
        image = vio.decode_png(data, mode)
        assert image.dtype == torch.uint16
        assert image.shape[0] == channels
        np.testing.assert_array_equal(image.numpy()[0], deep)
    assert vio.decode_png(data, "GRAY_ALPHA")[1].int().unique().tolist() == [65535]


def test_damaged_files_are_errors_and_nothing_else() -> None:
    chance = np.random.default_rng(1)
    frames = [PICTURE.rotate(angle) for angle in (0, 90)]
    files = [encoded(PICTURE, kind) for kind in ("PNG", "JPEG", "WEBP", "GIF")]
    files.append(encoded(frames[0], "GIF", save_all=True, append_images=frames[1:]))
    for data in files:
        for _ in range(40):
            damaged = data.clone()
            places = torch.from_numpy(chance.integers(0, len(data), 4))
            damaged[places] = torch.from_numpy(chance.integers(0, 256, 4, dtype=np.uint8))
            with contextlib.suppress(RuntimeError):
                vio.decode_image(damaged[: chance.integers(1, len(data) * 2)])


def test_exif_turns_a_picture_when_asked() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned clockwise
    data = encoded(PICTURE, "PNG", exif=exif)
    assert vio.decode_image(data).shape == (3, 6, 7)
    turned = vio.decode_image(data, apply_exif_orientation=True)
    np.testing.assert_array_equal(turned.numpy(), np.rot90(PIXELS, -1, (1, 2)))


def test_a_gif_gives_its_frames() -> None:
    frames = [Image.new("RGB", (5, 4), color) for color in ("red", "lime", "blue")]
    data = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    decoded = vio.decode_image(data)
    assert decoded.shape == (3, 3, 4, 5)
    assert decoded[:, :, 0, 0].tolist() == [[255, 0, 0], [0, 255, 0], [0, 0, 255]]
    assert vio.decode_gif(encoded(frames[0], "GIF")).shape == (3, 4, 5)


def test_a_webp_without_loss_keeps_all_pixels() -> None:
    data = encoded(PICTURE, "WEBP", lossless=True)
    np.testing.assert_array_equal(vio.decode_webp(data).numpy(), PIXELS)


def test_files_are_bytes(tmp_path) -> None:
    data = torch.tensor([1, 2, 255], dtype=torch.uint8)
    vio.write_file(tmp_path / "a", data)
    assert torch.equal(vio.read_file(str(tmp_path / "a")), data)
    (tmp_path / "empty").touch()
    assert vio.read_file(tmp_path / "empty").shape == (0,)


PNG = encoded(PICTURE, "PNG")


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: vio.read_file("missing"), RuntimeError, "missing cannot be read: No such file"),
        (lambda: vio.read_image("missing"), RuntimeError, "cannot be read"),
        (lambda: vio.decode_image(PNG[:60]), RuntimeError, "decode_image: "),
        (lambda: vio.decode_image(PNG[:0]), RuntimeError, "0 bytes"),
        (lambda: vio.decode_image(torch.zeros(9)), RuntimeError, "1-D tensor of torch.uint8"),
        (lambda: vio.decode_image(PNG[None]), RuntimeError, "1-D tensor of torch.uint8"),
        (lambda: vio.decode_jpeg(PNG), RuntimeError, "cannot be read as an image"),
        (lambda: vio.decode_jpeg([]), ValueError, "the list is empty"),
        (lambda: vio.decode_image(PNG, "GREY"), ValueError, "'GREY'"),
        (lambda: vio.encode_png(torch.zeros(3, 2, 2)), RuntimeError, "torch.float32"),
        (lambda: vio.encode_png(PNG), RuntimeError, "one or three channels"),
        (lambda: vio.encode_png(torch.from_numpy(PIXELS), 10), RuntimeError, "from 0 to 9"),
        (lambda: vio.encode_jpeg(torch.from_numpy(PIXELS), 0), ValueError, "from 1 to 100"),
        (lambda: vio.write_file("/no/such/folder", PNG), RuntimeError, "cannot be written"),
    ],
)
def test_mistakes_are_named(call, error, text) -> None:
    with pytest.raises(error, match=text):
        call()
