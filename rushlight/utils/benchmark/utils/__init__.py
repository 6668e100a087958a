"""The parts of benchmark, where PyTorch has them."""
