"""Settings of deterministic runs."""

# Whether programs want fresh memory filled with a known value when algorithms must be
# deterministic; nothing here reads memory that it did not write.
fill_uninitialized_memory: bool = True
