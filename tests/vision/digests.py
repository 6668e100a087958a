"""Digests of the state_dicts of torchvision's models: names, shapes and dtypes, in their order.

tests/compat/test_vision_models.py checks the file against torchvision, and says how to write it.
"""

import hashlib
import json
from pathlib import Path

FILE = Path(__file__).with_name("model_digests.json")


def digest(state_dict) -> str:
    lines = [
        f"{name} {tuple(value.shape)} {str(value.dtype).rpartition('.')[2]}"
        for name, value in state_dict.items()
    ]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def describe(model) -> list:
    """What the file holds of a model: its number of parameters and the digest."""
    return [sum(param.numel() for param in model.parameters()), digest(model.state_dict())]


def read() -> dict[str, list]:
    return json.loads(FILE.read_text())
