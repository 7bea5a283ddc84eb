"""What a node daemon says of the end of a script or step, beside its exit code: the words of
`BatchComplete.fault` and `StepComplete.fault`. Programs that have to start quickly read them, so
there are no imports.
"""

PROLOG = "prolog"  # it failed, and the script was not run
MEMORY = "memory"  # processes were killed, as the job used more than it had
KILLED = "killed"  # the job was, by the daemon: it used more memory than it had
CANCELLED = "cancelled"  # by the owner of an emulated job
OUT_OF_MEMORY = 125  # the "signal" of a script or step that used more memory than it had
