"""Nodes over time: they come, fall silent, are drained, rebooted and switched off."""
