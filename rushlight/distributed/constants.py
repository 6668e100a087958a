"""The default timeout, where programs import it from."""

from rushlight.distributed.rendezvous import default_pg_timeout

__all__ = ["default_pg_nccl_timeout", "default_pg_timeout"]

default_pg_nccl_timeout = None
