"""What sbatch, salloc, srun and scrontab have in common: the options of a job."""
