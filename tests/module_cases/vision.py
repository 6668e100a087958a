"""Resizing, sampling, padding, folding and shuffling of images."""

from module_cases import Case, floats

SIZES = {"1d": (2, 3, 7), "2d": (2, 3, 5, 7), "3d": (1, 2, 4, 5, 6)}
AMOUNTS = {"1d": (2, 1), "2d": (2, 1, 0, 3), "3d": (2, 1, 0, 3, 1, 1)}

RESIZED = [
    Case("nn.Upsample(scale_factor=2)", floats(2, 3, 5)),
    Case("nn.Upsample(size=(4, 9), mode='nearest-exact')", floats(1, 2, 6, 5)),
    Case("nn.Upsample(scale_factor=1.7, mode='linear')", floats(2, 3, 5)),
    Case("nn.Upsample(scale_factor=2, mode='bilinear')", floats(1, 2, 5, 17)),
    Case("nn.Upsample(size=7, mode='bilinear', align_corners=True)", floats(1, 2, 4, 5)),
    Case("nn.Upsample(scale_factor=(0.6, 2.5), mode='bicubic')", floats(1, 2, 6, 5)),
    Case("nn.Upsample(size=(6, 3), mode='bicubic', align_corners=True)", floats(1, 2, 4, 5)),
    Case("nn.Upsample(scale_factor=(1.5, 2, 3), mode='trilinear')", floats(1, 1, 2, 3, 4)),
    Case("nn.Upsample(size=(3, 4, 5), mode='nearest')", floats(1, 1, 2, 3, 4)),
    Case("nn.Upsample(size=(2, 3, 3), mode='area')", floats(1, 1, 4, 5, 4)),
    Case("nn.UpsamplingNearest2d(scale_factor=1.5)", floats(1, 2, 4, 5)),
    Case("nn.UpsamplingBilinear2d(size=(6, 9))", floats(1, 2, 4, 5)),
    Case("lambda x: F.interpolate(x, 3, mode='bilinear', antialias=True)", floats(1, 2, 7, 8)),
    Case("lambda x: F.interpolate(x, 4, mode='bicubic', antialias=True)", floats(1, 2, 7, 9)),
    Case("lambda x: F.interpolate(x, scale_factor=0.4, mode='area')", floats(1, 2, 7, 9)),
    Case(
        "lambda x: F.interpolate(x, scale_factor=1.3, mode='bilinear', "
        "recompute_scale_factor=True)",
        floats(1, 2, 5, 4),
    ),
]
SAMPLED = [
    Case(
        f"lambda x, grid: F.grid_sample(x, grid, {mode!r}, {padding!r}, align_corners={aligned})",
        floats(1, 2, 4, 5),
        floats(1, 3, 4, 2, low=-1.7, high=1.7),
        tolerance=1e-5,
    )
    for mode in ("bilinear", "nearest", "bicubic")
    for padding in ("zeros", "border", "reflection")
    for aligned in (False, True)
]
SAMPLED += [
    Case(
        f"lambda x, grid: F.grid_sample(x, grid, padding_mode={padding!r}, align_corners=False)",
        floats(1, 2, 3, 4, 2),
        floats(1, 2, 3, 1, 3, low=-1.7, high=1.7),
        tolerance=1e-5,
    )
    for padding in ("zeros", "border", "reflection")
]
SAMPLED += [
    Case("lambda t: F.affine_grid(t, (2, 1, 3, 4), align_corners=False)", floats(2, 2, 3)),
    Case("lambda t: F.affine_grid(t, (1, 1, 2, 3, 4), align_corners=True)", floats(1, 3, 4)),
]
PADDED = [
    Case(f"nn.{name}Pad{dims}({amounts!r}{value})", floats(*SIZES[dims]))
    for name, value in {
        "Constant": ", 1.5",
        "Zero": "",
        "Reflection": "",
        "Replication": "",
        "Circular": "",
    }.items()
    for dims, amounts in AMOUNTS.items()
]
PADDED += [
    Case("nn.ReflectionPad2d(2)", floats(3, 4, 5)),
    Case("nn.ZeroPad2d((-1, 2, 1, -2))", floats(1, 2, 4, 5)),
    Case("nn.CircularPad1d((2, -1))", floats(1, 2, 5)),
]
OTHERS = [
    Case("nn.PixelShuffle(2)", floats(2, 8, 3, 2)),
    Case("nn.PixelUnshuffle(2)", floats(2, 2, 4, 6)),
    Case("nn.ChannelShuffle(3)", floats(2, 6, 2, 2)),
    Case("nn.Unfold((2, 3), dilation=2, padding=1, stride=2)", floats(2, 3, 6, 7)),
    Case("nn.Unfold(2)", floats(3, 4, 5)),
    Case("nn.Fold((6, 7), (2, 3), dilation=2, padding=1, stride=2)", floats(2, 12, 9)),
    Case("nn.Fold((4, 5), 2)", floats(8, 12)),
    Case("nn.LocalResponseNorm(3, alpha=0.5, beta=0.6, k=2)", floats(2, 5, 3)),
    Case("nn.LocalResponseNorm(4, alpha=0.5)", floats(2, 5, 3, 2)),
    Case("nn.LocalResponseNorm(8)", floats(2, 5, 2, 2, 2)),
    # PyTorch never takes the first channel out of a window again: few channels do not show it.
    Case("nn.CrossMapLRN2d(4, alpha=0.5)", floats(2, 2, 3, 2)),
]
CASES = RESIZED + SAMPLED + PADDED + OTHERS
