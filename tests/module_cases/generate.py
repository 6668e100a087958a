"""Writes PyTorch's records of the named families, or of all.

Usage: PYTHONPATH=tests python -m module_cases.generate [NAME ...]
"""

import sys

import numpy as np
import torch

from module_cases import FAMILIES, family, file_of


def main() -> None:
    """Floating-point parts are computed in float64 and kept in float32, which halves the files."""
    for name in sys.argv[1:] or FAMILIES:
        parts = {}
        for case in family(name):
            for part, value in case.record(torch, torch.float64).items():
                kept = value.astype(np.float32) if value.dtype == np.float64 else value
                parts[f"{case.expression}: {part}"] = kept
        np.savez_compressed(file_of(name), **parts)
        print(f"{name}: {len(parts)} arrays, {file_of(name).stat().st_size} bytes")


if __name__ == "__main__":
    main()
