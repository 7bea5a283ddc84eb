"""Plan-based scheduling: a start time for every waiting job, improved by search."""
