"""Where PyTorch has what torch.library is made of."""
