"""Policies side by side on the same workloads, and beside published numbers."""
