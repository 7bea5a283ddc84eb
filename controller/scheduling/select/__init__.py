"""Which nodes, cores and devices a job gets."""
