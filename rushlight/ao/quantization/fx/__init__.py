"""Where PyTorch has what quantizes graphs; quantize_fx is beside it."""
