"""Where PyTorch had tensors in parts before DTensor."""
