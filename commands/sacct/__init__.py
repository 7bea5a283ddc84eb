"""sacct."""
