"""Jobs that wait: whether they may be considered, for whom they wait, in which order; and those
that are forgotten.
"""
