"""Averages of the parameters that processes learn apart from each other."""
