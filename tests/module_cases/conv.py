"""Convolutions and transposed convolutions in 1 to 3 dimensions."""

from module_cases import Case, floats

LINES, IMAGES, VOLUMES = floats(2, 4, 11), floats(2, 4, 8, 7), floats(2, 4, 5, 6, 4)

CASES = [
    Case("nn.Conv1d(4, 6, 3, stride=2, padding=1, dilation=2, groups=2)", LINES),
    Case("nn.Conv1d(4, 3, 4, padding='same', dilation=2)", LINES),
    Case("nn.Conv1d(4, 3, 2, padding='valid', bias=False)", LINES),
    Case("nn.Conv1d(4, 3, 3, padding=2, padding_mode='circular')", LINES),
    Case("nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 2), groups=2)", IMAGES),
    Case("nn.Conv2d(4, 8, 3, padding='same', groups=4, bias=False)", IMAGES),
    Case("nn.Conv2d(4, 2, 3, padding=(2, 1), padding_mode='reflect')", IMAGES),
    Case("nn.Conv2d(4, 2, (2, 3), padding='same', padding_mode='replicate')", IMAGES),
    Case("nn.Conv2d(4, 5, 1)", floats(4, 6, 5)),
    Case("nn.Conv3d(4, 6, (3, 2, 1), stride=2, padding=1, groups=2)", VOLUMES),
    Case("nn.Conv3d(4, 2, 2, dilation=(2, 1, 2), padding='same')", VOLUMES),
    Case("nn.Conv3d(4, 2, 3, padding=1, padding_mode='replicate')", VOLUMES),
    Case("nn.ConvTranspose1d(4, 6, 3, 2, 1, 1, groups=2)", LINES),
    Case("nn.ConvTranspose2d(4, 2, (3, 2), (2, 3), 1, (1, 2), bias=False)", IMAGES),
    Case("nn.ConvTranspose2d(4, 4, 3, dilation=2, groups=4)", floats(4, 5, 6)),
    Case("nn.ConvTranspose3d(4, 2, 2, 2)", VOLUMES),
    Case("nn.ConvTranspose3d(4, 6, (3, 1, 2), (2, 1, 3), (1, 0, 1), (1, 0, 2), 2)", VOLUMES),
    Case("nn.ConvTranspose3d(4, 2, 3, dilation=(1, 2, 1), bias=False)", floats(4, 3, 4, 5)),
    Case(
        "lambda x, w: F.conv_transpose3d(x, w, stride=2, output_padding=(1, 0, 1), groups=2)",
        VOLUMES,
        floats(4, 3, 2, 2, 2),
    ),
    Case("lambda x, w, b: F.conv_tbc(x, w, b, 2)", floats(6, 2, 3), floats(3, 3, 4), floats(4)),
    Case(
        "lambda x, w: F.conv2d(x.to(memory_format=torch.channels_last), w, padding=1, groups=2)",
        IMAGES,
        floats(6, 2, 3, 3),
    ),
]
