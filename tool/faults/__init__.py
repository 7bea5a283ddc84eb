"""Faults: a cluster in one process whose daemons, links and disks fail as told, and what must hold
of it all the same.
"""
