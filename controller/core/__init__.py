"""What all handlers work on, and the alarms, agents and locks beside it."""
