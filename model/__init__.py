"""The vocabulary that all others share."""
