"""What finds differences between real Slurm and ours by itself; README.md says how."""
