"""slurmdbd's part: clusters, accounts, users, associations, qualities of service; what jobs used,
and who may use what.
"""
