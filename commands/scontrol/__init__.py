"""scontrol."""
