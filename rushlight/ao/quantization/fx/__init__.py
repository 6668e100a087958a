"""What quantizes graphs, for quantize_fx: the three steps, and the configurations of them."""
