"""What people type: Slurm's commands and `understudy`."""
