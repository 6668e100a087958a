"""The items of plans: what this rank has of a value, and what it needs of one that is stored."""

from __future__ import annotations

from typing import Any

import rushlight as rl
from rushlight import Tensor
from rushlight.distributed.checkpoint.metadata import (
    STORAGE_TYPES,
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
    TensorStorageMetadata,
    tiles,
    whole,
)
from rushlight.distributed.checkpoint.planner import (
    LoadItemType,
    ReadItem,
    TensorWriteData,
    WriteItem,
    WriteItemType,
)
from rushlight.distributed.tensor import DTensor
from rushlight.distributed.tensor._api import local_of

__all__ = ["create_read_items_for_chunk_list"]


def _create_chunk_list(tensor: Tensor) -> list[ChunkStorageMetadata]:
    """Returns where this rank's part of a tensor lies; nothing if it has none.

    Raises:
        ValueError: for parts that are still to be summed up.
    """
    if not isinstance(tensor, DTensor):
        return [whole(tensor.shape)]
    if any(placement.is_partial() for placement in tensor.placements):
        raise ValueError(
            f"a DTensor with placements {tensor.placements} is not what it sums up to yet. "
            "Redistribute it first."
        )
    local, spec = tensor._local_tensor, tensor._spec
    if spec.mesh.get_coordinate() is None or (tensor.numel() and not local.numel()):
        return []
    offsets = rl.Size(spec.offset(dim) for dim in range(tensor.dim()))
    return [ChunkStorageMetadata(offsets, local.shape)]


def _create_write_items(fqn: str, object: Any) -> list[WriteItem]:
    """Returns what this rank would write of a value.

    Raises:
        ValueError: for tensors without elements of their own.
    """
    if not isinstance(object, Tensor):
        return [WriteItem(MetadataIndex(fqn), WriteItemType.BYTE_IO)]
    local = local_of(object)
    if local.is_meta:
        raise ValueError(f"save: {fqn} is on meta, without elements to save.")
    kind = WriteItemType.SHARD if isinstance(object, DTensor) else WriteItemType.TENSOR
    properties = TensorProperties.create_from_tensor(local)
    return [
        WriteItem(
            MetadataIndex(fqn, chunk.offsets),
            kind,
            tensor_data=TensorWriteData(chunk, properties, object.shape),
        )
        for chunk in _create_chunk_list(object)
    ]


def _create_read_items(fqn: str, md: STORAGE_TYPES, obj: Any) -> list[ReadItem]:
    """Returns what this rank reads to fill its part of a value.

    Raises:
        ValueError: if the tensor has no memory, or the checkpoint lacks some of it.
    """
    if not isinstance(md, TensorStorageMetadata):
        nowhere = rl.Size((0,))
        index = MetadataIndex(fqn)
        return [ReadItem(LoadItemType.BYTE_IO, index, nowhere, index, nowhere, nowhere)]
    if local_of(obj).is_meta:
        raise ValueError(f"load: {fqn} is on meta, without memory to fill. Call to_empty first.")
    chunks = _create_chunk_list(obj)
    items = create_read_items_for_chunk_list(fqn, md, chunks)
    filled = [ChunkStorageMetadata(item.dest_offsets, item.lengths) for item in items]
    if not all(tiles(filled, whole(chunk.sizes)) for chunk in chunks):  # of a DTensor there is one
        raise ValueError(
            f"load: the checkpoint lacks elements of {fqn}, a tensor of shape {tuple(md.size)}, or "
            "has some twice. It is damaged."
        )
    return items


def create_read_items_for_chunk_list(
    fqn: str, checkpoint_md: TensorStorageMetadata, local_chunks: list[ChunkStorageMetadata]
) -> list[ReadItem]:
    """Returns what must be read of a stored tensor to fill boxes of it.

    Args:
        fqn: its key.
        checkpoint_md: what is known of it, with the parts that are stored.
        local_chunks: the boxes.

    Returns:
        An item for each part and box that overlap.

    Example:
        >>> from rushlight.distributed.checkpoint import metadata, planner_helpers
        >>> def rows(begin, end):
        ...     return metadata.ChunkStorageMetadata(torch.Size([begin]), torch.Size([end - begin]))
        >>> stored = metadata.TensorStorageMetadata(
        ...     metadata.TensorProperties(), torch.Size([6]), [rows(0, 4), rows(4, 6)]
        ... )
        >>> items = planner_helpers.create_read_items_for_chunk_list("x", stored, [rows(3, 6)])
        >>> [(*item.dest_offsets, *item.storage_offsets, *item.lengths) for item in items]
        [(0, 3, 1), (1, 0, 2)]
    """
    items: list[ReadItem] = []
    for place, box in enumerate(local_chunks):
        for stored_place, part in enumerate(checkpoint_md.chunks):
            begins = [max(a, b) for a, b in zip(box.offsets, part.offsets, strict=True)]
            ends = map(min, _ends(box), _ends(part))
            lengths = rl.Size(end - begin for begin, end in zip(begins, ends, strict=True))
            if all(length > 0 for length in lengths):
                items.append(
                    ReadItem(
                        LoadItemType.TENSOR,
                        MetadataIndex(fqn, box.offsets, place),
                        rl.Size(b - o for b, o in zip(begins, box.offsets, strict=True)),
                        MetadataIndex(fqn, part.offsets, stored_place),
                        rl.Size(b - o for b, o in zip(begins, part.offsets, strict=True)),
                        lengths,
                    )
                )
    return items


def _ends(box: ChunkStorageMetadata) -> list[int]:
    return [offset + length for offset, length in zip(box.offsets, box.sizes, strict=True)]


def narrowed(tensor: Any, offsets: rl.Size, lengths: rl.Size) -> Tensor:
    """Returns a box of a tensor, or of a slice of a file that is indexed like one."""
    return tensor[tuple(slice(o, o + n) for o, n in zip(offsets, lengths, strict=True))]
