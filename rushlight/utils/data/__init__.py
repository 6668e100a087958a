"""Datasets, samplers and the loader that makes batches of them."""

from typing import TYPE_CHECKING

from rushlight import _later
from rushlight.utils.data import _utils as _utils
from rushlight.utils.data._utils.collate import default_collate, default_convert
from rushlight.utils.data.dataloader import DataLoader
from rushlight.utils.data.dataloader import _DatasetKind as _DatasetKind
from rushlight.utils.data.dataset import (
    ChainDataset,
    ConcatDataset,
    Dataset,
    IterableDataset,
    StackDataset,
    Subset,
    TensorDataset,
    random_split,
)
from rushlight.utils.data.distributed import DistributedSampler
from rushlight.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
)
from rushlight.utils.data.worker_info import get_worker_info

if TYPE_CHECKING:
    from rushlight.utils.data.datapipes._decorator import (
        argument_validation,
        functional_datapipe,
        guaranteed_datapipes_determinism,
        non_deterministic,
        runtime_validation,
        runtime_validation_disabled,
    )
    from rushlight.utils.data.datapipes.datapipe import DataChunk, IterDataPipe, MapDataPipe

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataChunk",
    "DataLoader",
    "Dataset",
    "DistributedSampler",
    "IterDataPipe",
    "IterableDataset",
    "MapDataPipe",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "argument_validation",
    "default_collate",
    "default_convert",
    "functional_datapipe",
    "get_worker_info",
    "guaranteed_datapipes_determinism",
    "non_deterministic",
    "random_split",
    "runtime_validation",
    "runtime_validation_disabled",
]

__getattr__ = _later.imports(
    __name__,
    ("datapipes", "graph", "graph_settings"),
    {
        "datapipes.datapipe": "DataChunk IterDataPipe MapDataPipe",
        "datapipes._decorator": "argument_validation functional_datapipe "
        "guaranteed_datapipes_determinism non_deterministic runtime_validation "
        "runtime_validation_disabled",
    },
)
