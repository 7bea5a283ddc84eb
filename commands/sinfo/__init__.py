"""sinfo."""
