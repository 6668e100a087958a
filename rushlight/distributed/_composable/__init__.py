"""Older homes of names, as programs import them."""
