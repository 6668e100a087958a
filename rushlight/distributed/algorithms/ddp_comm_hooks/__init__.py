"""Functions that average the gradients of DistributedDataParallel in other ways."""
