"""Where PyTorch's compiler keeps what it compiled; nothing is here, for programs that import it."""
