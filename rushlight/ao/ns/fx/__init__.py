"""The part of torch.ao.ns for results of networks."""
