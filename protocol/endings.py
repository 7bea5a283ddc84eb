"""What a node daemon says of the end of a script or step, beside its exit code: the words of
`BatchComplete.fault` and `StepComplete.fault`.
"""

from typing import Final

PROLOG: Final = "prolog"  # it failed, and the script was not run
MEMORY: Final = "memory"  # processes were killed, as the job used more than it had
KILLED: Final = "killed"  # the job was, by the daemon: it used more memory than it had
CANCELLED: Final = "cancelled"  # by the owner of an emulated job
