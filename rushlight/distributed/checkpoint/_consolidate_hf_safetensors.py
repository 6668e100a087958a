"""The function that makes whole tensors of parts, where programs look for it."""

from __future__ import annotations

from rushlight.distributed.checkpoint.hf_storage import consolidate

__all__ = ["consolidate_safetensors_files"]


def consolidate_safetensors_files(
    input_dir: str, output_dir: str, fqn_to_index_mapping: dict[str, int], num_threads: int = 1
) -> None:
    """Writes the whole tensors of which a folder has parts to another folder.

    Args:
        input_dir: what a HuggingFaceStorageWriter has written.
        output_dir: which is made.
        fqn_to_index_mapping: the number of each tensor's file, from 1.
        num_threads: accepted for PyTorch's sake.

    Raises:
        FileNotFoundError: if there are no such files.
        ValueError: if one is damaged.
    """
    consolidate(input_dir, output_dir, fqn_to_index_mapping)
