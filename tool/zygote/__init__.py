"""Slurm's commands without the start of an interpreter: starters, and a process that forks."""
