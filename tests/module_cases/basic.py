"""Linear layers, convolutions, norms and embeddings."""

import numpy as np

from module_cases import Case, floats, ints

CASES = [
    Case("nn.Linear(3, 4)", floats(5, 3)),
    Case("nn.Linear(3, 4, bias=False)", floats(2, 5, 3)),
    Case("nn.Bilinear(3, 4, 2)", floats(5, 3), floats(5, 4)),
    Case("nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2)", floats(2, 4, 9)),
    Case("nn.Conv2d(4, 6, 3, padding='same', dilation=2)", floats(2, 4, 7, 6)),
    Case("nn.Conv2d(2, 3, (3, 2), padding=1, padding_mode='reflect')", floats(2, 2, 5, 6)),
    Case("nn.Conv2d(2, 3, 3, padding=2, padding_mode='circular')", floats(1, 2, 5, 6)),
    Case("nn.Conv3d(2, 3, 2)", floats(1, 2, 3, 4, 5)),
    Case("nn.ConvTranspose1d(4, 6, 3, stride=2, output_padding=1)", floats(2, 4, 5)),
    Case("nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2)", floats(1, 4, 5, 4)),
    Case("nn.BatchNorm1d(3)", floats(6, 3)),
    Case("nn.BatchNorm1d(3, momentum=None, affine=False)", floats(4, 3, 5)),
    Case("nn.BatchNorm2d(3).eval()", floats(4, 3, 5, 2)),
    Case("nn.BatchNorm3d(3, track_running_stats=False)", floats(2, 3, 2, 2, 2)),
    Case("nn.InstanceNorm1d(3, affine=True)", floats(2, 3, 7)),
    Case("nn.InstanceNorm2d(3, track_running_stats=True)", floats(2, 3, 4, 5)),
    Case("nn.LayerNorm((3, 4))", floats(2, 3, 4)),
    Case("nn.LayerNorm(4, bias=False)", floats(2, 3, 4)),
    Case("nn.GroupNorm(2, 6)", floats(3, 6, 4)),
    Case("nn.RMSNorm(5)", floats(3, 5)),
    Case("nn.Embedding(7, 3, padding_idx=2)", ints(4, 5, high=7)),
    Case("nn.Embedding(7, 3, scale_grad_by_freq=True)", np.array([1, 1, 6, 0, 1])),
    Case("nn.PReLU(3)", floats(2, 3, 4)),
    Case("nn.Sequential(nn.Linear(3, 8), nn.GELU(), nn.Linear(8, 2))", floats(5, 3)),
]
