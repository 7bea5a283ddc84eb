"""What became of the jobs of runs: runs side by side, and the story of one job."""
