"""Launchers as objects: a program starts the processes of its machine, and watches them."""
