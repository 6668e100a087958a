"""torch.ao.quantization.backend_config: what back ends compute with integers.

prepare_fx, prepare_qat_fx and convert_fx take a BackendConfig, which says which patterns are
quantized, with which dtypes, and by which layers they are fused, trained and replaced.
"""

from rushlight.ao.quantization.backend_config.backend_config import (
    BackendConfig,
    BackendPatternConfig,
    DTypeConfig,
    DTypeWithConstraints,
    ObservationType,
)
from rushlight.ao.quantization.backend_config.executorch import get_executorch_backend_config
from rushlight.ao.quantization.backend_config.fbgemm import get_fbgemm_backend_config
from rushlight.ao.quantization.backend_config.native import (
    get_native_backend_config,
    get_native_backend_config_dict,
)
from rushlight.ao.quantization.backend_config.onednn import get_onednn_backend_config
from rushlight.ao.quantization.backend_config.qnnpack import get_qnnpack_backend_config
from rushlight.ao.quantization.backend_config.tensorrt import (
    get_tensorrt_backend_config,
    get_tensorrt_backend_config_dict,
)
from rushlight.ao.quantization.backend_config.x86 import get_x86_backend_config

__all__ = [
    "BackendConfig",
    "BackendPatternConfig",
    "DTypeConfig",
    "DTypeWithConstraints",
    "ObservationType",
    "get_executorch_backend_config",
    "get_fbgemm_backend_config",
    "get_native_backend_config",
    "get_native_backend_config_dict",
    "get_onednn_backend_config",
    "get_qnnpack_backend_config",
    "get_tensorrt_backend_config",
    "get_tensorrt_backend_config_dict",
    "get_x86_backend_config",
]
