"""What follows from the tables and is stored nowhere."""
