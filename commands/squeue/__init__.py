"""squeue."""
