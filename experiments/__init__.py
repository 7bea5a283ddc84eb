"""Traces in, replay through a live cluster, metrics and reports."""
