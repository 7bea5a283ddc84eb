"""Decisions: which jobs start when, and on which nodes. `api.py` is the contract; nothing here does
I/O.
"""
