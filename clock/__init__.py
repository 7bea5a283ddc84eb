"""Time: the clock service, the event loops that take their time from it, and what every daemon has
around its core.
"""
