"""Streams and events: which work on a GPU runs in order, and which may run at once."""

from __future__ import annotations

from typing import Any

from rushlight import _C
from rushlight.cuda._device import gpu_index


class Stream:
    """A queue of work on a GPU: what is on one stream runs in order.

    Work on different streams runs in any order, unless wait_stream or an event orders it. A tensor
    that is used on another stream than it was made on needs Tensor.record_stream.

    Args:
        device: which GPU; the current one without it.
        priority: negative for work that goes first.
        stream_ptr: the handle of a stream of another library, to use instead of one of ours.
    """

    def __init__(self, device: Any = None, priority: int = 0, *, stream_ptr: int | None = None):
        self.device_index = gpu_index(device)
        self.priority = priority
        self.cuda_stream: int = (
            _C._cuda_pool_stream(self.device_index, priority) if stream_ptr is None else stream_ptr
        )

    @property
    def device(self) -> _C.device:
        """The GPU that it belongs to."""
        return _C.device("cuda", self.device_index)

    def synchronize(self) -> None:
        """Waits until all work queued so far is done."""
        _C._cuda_stream_synchronize(self.device_index, self.cuda_stream)

    def query(self) -> bool:
        """Returns whether all work queued so far is done."""
        return _C._cuda_stream_is_done(self.device_index, self.cuda_stream)

    def record_event(self, event: Event | None = None) -> Event:
        """Records an event, a new one without an argument, and returns it."""
        event = Event() if event is None else event
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Lets all later work here wait for an event."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Lets all later work here wait for what is queued on another stream now."""
        self.wait_event(stream.record_event())

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Stream)
            and self.device_index == other.device_index
            and self.cuda_stream == other.cuda_stream
        )

    def __hash__(self) -> int:
        return hash((self.device_index, self.cuda_stream))

    def __repr__(self) -> str:
        return f"<torch.cuda.Stream device={self.device} cuda_stream={self.cuda_stream:#x}>"


class ExternalStream(Stream):
    """A stream that another library made, which must live as long as it is used here.

    Args:
        stream_ptr: its handle, a cudaStream_t as an int.
        device: its GPU; the current one without it.
    """

    def __init__(self, stream_ptr: int, device: Any = None) -> None:
        super().__init__(device, stream_ptr=stream_ptr)


class Event:
    """A point in the work of a stream, to wait for or to measure time with.

    Args:
        enable_timing: whether elapsed_time can be asked.
        blocking: whether synchronize sleeps; otherwise it waits faster, and busily.
        interprocess: must be False; memory of a GPU is not shared with other processes here, so
            there is nothing to wait for.
        external: must be False; an event that a CUDA graph records orders work of that graph only.
    """

    def __init__(
        self,
        enable_timing: bool = False,
        blocking: bool = False,
        interprocess: bool = False,
        external: bool = False,
    ) -> None:
        if external:
            raise NotImplementedError(
                "Event: external=True is not supported. Record an event after the replay instead."
            )
        if interprocess:
            raise NotImplementedError(
                "Event: interprocess=True is not supported. Synchronize before handing data over."
            )
        self._event = _C._CudaEvent(enable_timing, blocking)

    @property
    def cuda_event(self) -> int:
        """The handle; 0 before the event is recorded."""
        return self._event.handle()

    @property
    def device(self) -> _C.device | None:
        """The GPU that it was recorded on, or None."""
        index = self._event.device_index()
        return None if index < 0 else _C.device("cuda", index)

    def record(self, stream: Stream | None = None) -> None:
        """Marks the point after all work queued on a stream, the current one without it, so far."""
        stream = current_stream() if stream is None else stream
        self._event.record(stream.device_index, stream.cuda_stream)

    def wait(self, stream: Stream | None = None) -> None:
        """Lets all later work on a stream, the current one without it, wait for the point."""
        stream = current_stream() if stream is None else stream
        self._event.block(stream.device_index, stream.cuda_stream)

    def query(self) -> bool:
        """Returns whether all work before the point is done; True before it is recorded."""
        return self._event.is_done()

    def synchronize(self) -> None:
        """Waits until all work before the point is done."""
        self._event.synchronize()

    def elapsed_time(self, end_event: Event) -> float:
        """Returns the milliseconds between this point and a later one.

        Raises:
            ValueError: when an event is not recorded, not done, or was made without timing.
        """
        return self._event.elapsed_time(end_event._event)

    def __repr__(self) -> str:
        return f"<torch.cuda.Event {self.cuda_event:#x}>"


def current_stream(device: Any = None) -> Stream:
    """Returns the stream that work of this thread is queued on.

    Args:
        device: of which GPU; the current one without it.
    """
    index = gpu_index(device)
    return Stream(index, stream_ptr=_C._cuda_current_stream(index))


def get_stream_from_external(data_ptr: int, device: Any = None) -> Stream:
    """Returns a stream that another library made.

    Args:
        data_ptr: its handle, a cudaStream_t as an int.
        device: its GPU; the current one without it.
    """
    return ExternalStream(data_ptr, device)


def default_stream(device: Any = None) -> Stream:
    """Returns the stream that is the current one until another is set.

    Args:
        device: of which GPU; the current one without it.
    """
    return Stream(device, stream_ptr=0)


def set_stream(stream: Stream | None) -> None:
    """Makes a stream the current one of this thread, and its GPU the current GPU.

    Args:
        stream: None changes nothing.
    """
    if stream is not None:
        _C._cuda_set_device(stream.device_index)
        _C._cuda_set_stream(stream.device_index, stream.cuda_stream)


class StreamContext:
    """A context in which a stream, and its GPU, is the current one; made by stream().

    Args:
        stream: None changes nothing.
    """

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream
        self._before: tuple[int, Stream] | None = None

    def __enter__(self) -> None:
        if self.stream is not None:
            self._before = (gpu_index(None), current_stream(self.stream.device_index))
            set_stream(self.stream)

    def __exit__(self, *exc_info: object) -> None:
        if self._before is not None:
            device, stream = self._before
            set_stream(stream)
            _C._cuda_set_device(device)


def stream(stream: Stream | None) -> StreamContext:
    """Returns a context in which a stream, and its GPU, is the current one.

    Args:
        stream: None changes nothing.
    """
    return StreamContext(stream)
