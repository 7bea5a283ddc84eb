"""Replays of traces and scenarios, and imports of histories."""
