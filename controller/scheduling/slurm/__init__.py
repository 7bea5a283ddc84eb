"""The schedulers of Slurm: builtin and backfill, with their queue, plan and rhythm."""
