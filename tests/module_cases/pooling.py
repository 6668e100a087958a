"""Pooling layers and functions in 1 to 3 dimensions."""

from module_cases import Case, floats

SAMPLES_2D = "torch.tensor([[[0.13, 0.81], [0.42, 0.05]]])"
SAMPLES_3D = "torch.tensor([[[0.13, 0.81, 0.33], [0.42, 0.05, 0.97]]])"
LINES, IMAGES, VOLUMES = floats(2, 3, 11), floats(2, 3, 9, 7), floats(2, 2, 6, 7, 5)

CASES = [
    Case("nn.MaxPool1d(3, 2, 1, return_indices=True)", LINES),
    Case("nn.MaxPool2d((3, 2), (2, 1), (1, 0), ceil_mode=True)", IMAGES),
    Case("nn.MaxPool2d(2, dilation=(2, 3), return_indices=True)", IMAGES),
    Case("nn.MaxPool3d(2)", VOLUMES),
    Case("nn.MaxPool3d((2, 3, 2), (2, 1, 2), (1, 1, 0), return_indices=True)", VOLUMES),
    Case("nn.MaxPool3d(3, 2, 1, 2, ceil_mode=True)", floats(2, 6, 7, 8)),
    Case("nn.AvgPool1d(3, 2, 1, count_include_pad=False)", LINES),
    Case("nn.AvgPool2d((3, 2), (2, 1), (1, 0), ceil_mode=True)", IMAGES),
    Case("nn.AvgPool3d(2)", VOLUMES),
    Case("nn.AvgPool3d((2, 3, 2), (2, 1, 2), (1, 1, 0), count_include_pad=False)", VOLUMES),
    Case("nn.AvgPool3d(3, 2, 1, ceil_mode=True, divisor_override=7)", floats(2, 6, 7, 8)),
    Case("nn.AdaptiveAvgPool1d(4)", LINES),
    Case("nn.AdaptiveAvgPool2d((4, None))", IMAGES),
    Case("nn.AdaptiveAvgPool3d((4, 2, None))", VOLUMES),
    Case("nn.AdaptiveAvgPool3d(1)", VOLUMES),
    Case("nn.AdaptiveMaxPool1d(4, return_indices=True)", LINES),
    Case("nn.AdaptiveMaxPool2d((4, None), return_indices=True)", IMAGES),
    Case("nn.AdaptiveMaxPool3d((4, 2, None), return_indices=True)", VOLUMES),
    Case("nn.LPPool1d(2, 3)", LINES),
    Case("nn.LPPool1d(3, 2, stride=3, ceil_mode=True)", floats(2, 3, 11, low=0.1)),
    Case("nn.LPPool2d(2, (3, 2), stride=(2, 1))", IMAGES),
    Case("nn.LPPool2d(1.5, 2, ceil_mode=True)", floats(3, 9, 7, low=0.1)),
    Case("nn.LPPool3d(2, (2, 3, 2), stride=2)", VOLUMES),
    Case(f"nn.FractionalMaxPool2d(2, 5, _random_samples={SAMPLES_2D})", floats(1, 2, 9, 8)),
    Case(
        "nn.FractionalMaxPool2d((3, 2), output_ratio=(0.5, 0.6), return_indices=True, "
        f"_random_samples={SAMPLES_2D})",
        floats(2, 12, 11),
    ),
    Case(
        f"nn.FractionalMaxPool3d(2, (4, 3, 1), return_indices=True, _random_samples={SAMPLES_3D})",
        floats(1, 2, 7, 8, 6),
    ),
    Case(
        "lambda x: F.fractional_max_pool3d(x, (2, 1, 3), output_ratio=(0.6, 0.5, 0.5), "
        f"_random_samples={SAMPLES_3D}.to(x))",
        floats(2, 7, 8, 9),
    ),
    Case("lambda x: F.max_unpool1d(*F.max_pool1d(x, 2, return_indices=True), 2)", LINES),
    Case(
        "lambda x: nn.MaxUnpool1d(3, 2, 1)(*nn.MaxPool1d(3, 2, 1, return_indices=True)(x), (12,))",
        floats(2, 3, 12),
    ),
    Case(
        "lambda x: nn.MaxUnpool2d(2)(*F.max_pool2d(x, 2, return_indices=True), "
        "output_size=x.shape)",
        IMAGES,
    ),
    Case(
        "lambda x: nn.MaxUnpool3d(2)(*F.max_pool3d(x, 2, return_indices=True), "
        "output_size=(6, 7, 5))",
        VOLUMES,
    ),
    Case("lambda x: F.max_pool3d_with_indices(x, 2)", VOLUMES),
    Case("lambda x: F.adaptive_max_pool3d_with_indices(x, 2)", VOLUMES),
    Case("lambda x: torch.max_pool3d(x, (2, 1, 2))", VOLUMES),
    Case(
        "lambda x: F.avg_pool3d(x.to(memory_format=torch.channels_last_3d), 2, 1, 1)",
        floats(2, 70, 4, 3, 5),
    ),
    Case(
        "lambda x: F.max_pool3d(x.to(memory_format=torch.channels_last_3d), 2, 1, 1)",
        floats(2, 70, 4, 3, 5),
    ),
]
