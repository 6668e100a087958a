"""torch.Event, which takes the device that torch.cuda.Event takes for granted."""

from __future__ import annotations

from typing import Any

from rushlight import _C, cuda


class Event(cuda.Event):
    """A point in the work of a stream of a GPU, to wait for or to measure time with.

    Args:
        device: the kind of device, whose current stream is meant unless another is named.
        enable_timing: whether elapsed_time can be asked.
        blocking: whether synchronize sleeps; otherwise it waits faster, and busily.
        interprocess: must be False.

    Raises:
        NotImplementedError: if the device is no GPU, which alone has streams.
    """

    def __init__(
        self,
        device: Any = None,
        *,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
    ) -> None:
        if device is not None and _C.device(device).type != "cuda":
            raise NotImplementedError(f"Event: there are no streams on {device}. Use a GPU.")
        super().__init__(enable_timing, blocking, interprocess)
