"""srun, sattach and sbcast: steps, from their options to the end of their tasks."""
