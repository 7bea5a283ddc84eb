"""What is asked of the controller: every handler is (core, message, sender)."""
