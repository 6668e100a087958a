"""Going over a dataset in batches, made here or by worker processes."""

from __future__ import annotations

from typing import Any

from cases.case import Call, case


class Images:
    """Labeled images that cost little to make, so that the loader is what is timed."""

    def __init__(self, torch: Any, size: int, width: int) -> None:
        self.images = torch.randint(0, 256, (size, 3, width, width), dtype=torch.uint8)

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, index: int) -> Any:
        return self.images[index].float() / 255, index % 10


def epoch(torch: Any, size: int, width: int, num_workers: int = 0, **options: Any) -> Call:
    loader = torch.utils.data.DataLoader(
        Images(torch, size, width),
        batch_size=32,
        shuffle=True,
        num_workers=num_workers,
        multiprocessing_context="fork" if num_workers else None,  # with any Python
        **options,
    )

    def call() -> int:
        return sum(len(labels) for _, labels in loader)

    return call


@case("epoch of 1024 images 3x32x32, batches of 32", "data", 0.9)
def small_images(torch: Any) -> Call:
    return epoch(torch, 1024, 32)


@case("epoch of 1024 images 3x32x32, batches of 32, 2 workers kept", "data", 0.5)
def small_images_by_workers(torch: Any) -> Call:
    return epoch(torch, 1024, 32, num_workers=2, persistent_workers=True)


@case("epoch of 256 images 3x224x224, batches of 32, 2 workers kept", "data", 0.5)
def large_images_by_workers(torch: Any) -> Call:
    return epoch(torch, 256, 224, num_workers=2, persistent_workers=True)


@case("epoch of 64 images 3x32x32, 2 new workers", "data", 0.9)
def new_workers(torch: Any) -> Call:
    return epoch(torch, 64, 32, num_workers=2)
