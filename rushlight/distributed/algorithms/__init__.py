"""What is built on collectives: uneven inputs and hooks for the gradients of data parallelism."""
