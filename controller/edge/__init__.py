"""Builds the core and connects it to the clock, the messenger, the disk and programs. Decides
nothing.
"""
