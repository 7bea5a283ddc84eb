"""Understudy: an emulated Slurm cluster of real daemons, real messages and real commands."""

__version__ = "0.1.0"
