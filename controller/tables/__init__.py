"""Jobs, nodes, partitions, reservations ... as values that know no core."""
