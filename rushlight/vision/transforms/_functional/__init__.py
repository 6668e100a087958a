"""What transforms and transforms.v2 do, written once: for tensors, Pillow images, boxes and points.

One file per subject holds the kernels, functions of plain tensors, and the functionals that find
the right kernel for a value (registry). Pillow's side of all subjects is in pillow_images, that of
boxes and points in box_geometry; both register their kernels by being imported here.
"""

from rushlight.vision.transforms._functional import box_geometry as _box_geometry  # noqa: F401
from rushlight.vision.transforms._functional import pillow_images as _pillow_images  # noqa: F401
