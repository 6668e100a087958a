"""Pipelines: a network cut into stages, each on a rank, that microbatches flow through.

PipelineStage holds a part, a schedule says who computes what when; pipeline() cuts a network by
itself. docs/pipelining.md tells how.
"""

from __future__ import annotations

from rushlight.distributed.pipelining._pipe import (
    Pipe,
    SplitPoint,
    build_stage,
    pipe_split,
    pipeline,
)
from rushlight.distributed.pipelining.schedules import (
    Schedule1F1B,
    ScheduleGPipe,
    ScheduleInterleaved1F1B,
    ScheduleInterleavedZeroBubble,
    ScheduleLoopedBFS,
    ScheduleZBVZeroBubble,
)
from rushlight.distributed.pipelining.stage import PipelineStage

__all__ = [
    "Pipe",
    "PipelineStage",
    "Schedule1F1B",
    "ScheduleGPipe",
    "ScheduleInterleaved1F1B",
    "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
    "SplitPoint",
    "build_stage",
    "pipe_split",
    "pipeline",
]
