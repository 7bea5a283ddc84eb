"""The node daemon: one process that stands for 1..16,384 nodes, executes or emulates their jobs,
and forwards messages.
"""
