"""PyTorch's home of vmap, where libraries look for its steps."""
