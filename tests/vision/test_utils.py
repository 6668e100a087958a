"""Grids, drawings and flow colors are what they should look like."""

import colorsys
import io

import numpy as np
import pytest
from PIL import Image

import rushlight as torch
from rushlight.vision import utils


def test_a_grid_has_the_images_in_their_places() -> None:
    images = torch.arange(5.0).view(5, 1, 1, 1).expand(5, 3, 2, 4)
    grid = utils.make_grid(images, nrow=3, padding=1, pad_value=9.0)
    assert grid.shape == (3, 2 * 3 + 1, 3 * 5 + 1)
    expected = np.full((7, 16), 9.0)
    for index in range(5):
        top, left = index // 3 * 3 + 1, index % 3 * 5 + 1
        expected[top : top + 2, left : left + 4] = index
    np.testing.assert_array_equal(grid[1].numpy(), expected)


@pytest.mark.parametrize("shape", [(2, 3), (1, 2, 3), (1, 1, 2, 3)])
def test_a_gray_image_alone_becomes_rgb(shape) -> None:
    assert utils.make_grid(torch.rand(shape)).shape == (3, 2, 3)


def test_values_are_scaled_together_or_each() -> None:
    images = torch.tensor([0.0, 2.0, 4.0, 8.0]).view(2, 1, 1, 2)
    whole = utils.make_grid(images, padding=0, normalize=True)
    assert whole[0].tolist() == [[0.0, 0.25, 0.5, 1.0]]
    each = utils.make_grid(images, padding=0, normalize=True, scale_each=True)
    assert each[0].tolist() == [[0.0, 1.0, 0.0, 1.0]]
    ranged = utils.make_grid(images, padding=0, normalize=True, value_range=(2, 4))
    assert ranged[0].tolist() == [[0.0, 0.0, 1.0, 1.0]]
    assert images.max() == 8


def test_a_saved_image_holds_rounded_bytes() -> None:
    file = io.BytesIO()
    utils.save_image(torch.tensor([[[0.0, 0.5, 1.0]]]).expand(3, 1, 3), file, format="PNG")
    assert np.asarray(Image.open(file))[0, :, 0].tolist() == [0, 128, 255]


def test_boxes_are_outlined_in_their_colors() -> None:
    image = torch.zeros(3, 20, 20, dtype=torch.uint8)
    boxes = torch.tensor([[2, 3, 8, 9], [10, 10, 18, 18]])
    drawn = utils.draw_bounding_boxes(image, boxes, colors=["red", (0, 0, 255)])
    assert drawn[:, 3, 2].tolist() == drawn[:, 9, 8].tolist() == [255, 0, 0]
    assert drawn[:, 10, 14].tolist() == [0, 0, 255]
    assert drawn[:, 5, 5].tolist() == [0, 0, 0]
    filled = utils.draw_bounding_boxes(image, boxes, colors="red", fill=True)
    assert filled[0, 5, 5] == 100
    assert image.max() == 0


def test_labels_and_rotated_boxes_leave_marks() -> None:
    image = torch.zeros(1, 40, 40)
    corners = torch.tensor([[20, 5, 35, 20, 20, 35, 5, 20]])
    drawn = utils.draw_bounding_boxes(image, corners, colors="white")
    assert drawn.shape == (3, 40, 40)
    assert drawn[0, 20, 35] == 1.0
    labeled = utils.draw_bounding_boxes(
        image, torch.tensor([[1, 1, 38, 38]]), ["cat"], "white", fill_labels=True
    )
    assert labeled[0, 2:20].sum() > drawn[0, 2:20].sum()


def test_masks_are_mixed_in_and_black_where_they_overlap() -> None:
    image = torch.full((3, 1, 3), 100, dtype=torch.uint8)
    masks = torch.tensor([[[True, True, False]], [[False, True, False]]])
    drawn = utils.draw_segmentation_masks(image, masks, alpha=0.5, colors=["red", "blue"])
    assert drawn[:, 0].T.tolist() == [[177, 50, 50], [50, 50, 50], [100, 100, 100]]


def test_invisible_points_and_their_lines_are_left_out() -> None:
    image = torch.zeros(3, 30, 30, dtype=torch.uint8)
    points = torch.tensor([[[5, 5], [25, 5], [5, 25]]])
    seen = torch.tensor([[True, True, False]])
    drawn = utils.draw_keypoints(image, points, [(0, 1), (0, 2)], "red", visibility=seen)
    assert drawn[:, 5, 5].sum() > 0
    assert drawn[:, 5, 15].tolist() == [255, 255, 255]
    assert drawn[:, 15, 5].sum() == 0
    assert drawn[:, 25, 5].sum() == 0


def test_places_far_outside_do_not_hold_up_the_drawing() -> None:
    image = torch.zeros(3, 20, 20, dtype=torch.uint8)
    far = 1e15
    drawn = utils.draw_bounding_boxes(image, torch.tensor([[5, 5, far, far]]), colors="white")
    assert drawn[0, 5, 5:].min() == 255
    utils.draw_bounding_boxes(image, torch.tensor([[0, 0, far, 0, far, far, 0, far]]), width=10**9)
    utils.draw_keypoints(image, torch.tensor([[[far, -far], [1, 1]]]), [(0, 1)], radius=10**9)
    utils.draw_bounding_boxes(image, torch.full((1, 4), float("nan")))


def test_flow_shows_directions_as_hues() -> None:
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    flow = torch.tensor(np.stack([np.cos(angles), np.sin(angles)])[:, None], dtype=torch.float32)
    colors = utils.flow_to_image(flow)[:, 0].numpy().T / 255
    hues = [colorsys.rgb_to_hsv(*color)[0] for color in colors]
    steps = np.diff(np.unwrap(np.array(hues) * 2 * np.pi))
    assert len(set(np.sign(steps))) == 1  # once around the wheel, in one direction
    assert utils.flow_to_image(torch.zeros(2, 2, 3, 4)).unique().tolist() == [255]


IMAGE = torch.zeros(3, 4, 4, dtype=torch.uint8)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: utils.make_grid([1]), TypeError),
        (lambda: utils.make_grid(IMAGE, normalize=True, value_range=[0, 1]), TypeError),
        (lambda: utils.draw_bounding_boxes("a", IMAGE), TypeError),
        (lambda: utils.draw_bounding_boxes(IMAGE[:2], torch.zeros(1, 4)), ValueError),
        (lambda: utils.draw_bounding_boxes(IMAGE, torch.tensor([[3, 0, 1, 1]])), ValueError),
        (lambda: utils.draw_bounding_boxes(IMAGE, torch.zeros(1, 4), ["a", "b"]), ValueError),
        (lambda: utils.draw_bounding_boxes(IMAGE, torch.zeros(2, 4), colors=["red"]), ValueError),
        (lambda: utils.draw_segmentation_masks(IMAGE, torch.zeros(4, 4)), ValueError),
        (lambda: utils.draw_keypoints(IMAGE, torch.zeros(2, 2)), ValueError),
        (lambda: utils.flow_to_image(torch.zeros(3, 4, 4)), ValueError),
        (lambda: utils.flow_to_image(IMAGE), ValueError),
    ],
)
def test_mistakes_are_refused(call, error) -> None:
    with pytest.raises(error):
        call()
