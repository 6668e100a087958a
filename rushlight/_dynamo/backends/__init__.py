"""The back ends of torch.compile."""
