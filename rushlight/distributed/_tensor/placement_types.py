"""The old name of rushlight.distributed.tensor.placement_types, which has the specs too."""

from rushlight.distributed.tensor._dtensor_spec import *  # noqa: F403
from rushlight.distributed.tensor.placement_types import *  # noqa: F403
