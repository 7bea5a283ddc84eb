"""slurmctld's part: tables of nodes, partitions and jobs; requests; scheduling; state on disk."""
