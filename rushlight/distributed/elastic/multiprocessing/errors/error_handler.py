"""ErrorHandler, where programs that inherit from it look for it."""

from rushlight.distributed.elastic.multiprocessing.errors import ErrorHandler as ErrorHandler

__all__ = ["ErrorHandler"]
