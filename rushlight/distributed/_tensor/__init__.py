"""The old name of rushlight.distributed.tensor."""

from rushlight.distributed import device_mesh as device_mesh
from rushlight.distributed.device_mesh import DeviceMesh as DeviceMesh
from rushlight.distributed.device_mesh import init_device_mesh as init_device_mesh
from rushlight.distributed.tensor import *  # noqa: F403
