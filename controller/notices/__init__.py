"""What is told of events: triggers, mail, the log of completed jobs."""
