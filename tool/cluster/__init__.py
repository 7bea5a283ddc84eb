"""Daemons of a cluster: described, started, found, ended."""
