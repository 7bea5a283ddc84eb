"""Load: requests by a schedule at a running cluster, and what became of them."""
