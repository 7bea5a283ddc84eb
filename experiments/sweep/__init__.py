"""Sweeps: what is varied, what came of it, and its page."""
