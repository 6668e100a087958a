"""torch.ao.ns: what quantization changes in numbers."""
