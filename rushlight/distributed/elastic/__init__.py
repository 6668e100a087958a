"""What programs import from PyTorch's elastic launcher; see run.py for the launcher."""
