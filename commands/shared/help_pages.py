"""What `--help` prints: the options of a command in Slurm's groups and under its headings, which
programs look for, in words of our own.

Place: commands alone, imported when somebody asks for help. Follows `--help` of 22.05.8: what it
does not list (`--test-only` of sbatch) is in docs/options.md and the manual pages.
"""

from understudy.commands.shared.options import NONE, OPTIONAL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from understudy.commands.shared.options import Option, OptionTable

_HELP = ("Help options:", "help usage")
_CONSTRAINTS = (
    "cluster-constraint contiguous constraint nodefile mem mincpus reservation tmp nodelist "
    "exclude no-allocate"
)
_AFFINITY = (
    "cpu-bind hint mem-bind sockets-per-node cores-per-socket threads-per-core "
    "extra-node-info ntasks-per-core ntasks-per-socket"
)
_GPUS = (
    "cpus-per-gpu gpus gpu-bind gpu-freq gpus-per-node gpus-per-socket gpus-per-task mem-per-gpu"
)
_JOB_GROUPS = (
    ("Constraint options:", _CONSTRAINTS),
    ("Consumable resources related options:", "exact exclusive mem-per-cpu resv-ports"),
    ("Affinity/Multi-core options: (when the task/affinity plugin is enabled)", _AFFINITY),
    ("GPU scheduling options:", _GPUS),
    _HELP,
    ("Other options:", "version"),
)
_VALUES = "    Valid <OPTION> values are:"


class Page:
    """How a command's help is laid out. `groups`: heading and options of each that is not in the
    first. `unlisted`: options of which Slurm's help says nothing. `named`: names under which it
    lists others. `between`: what stands between the short and the long name, and behind both.
    """

    def __init__(
        self,
        usage: str,
        groups: "tuple[tuple[str, str], ...]" = (_HELP,),
        unlisted: str = "",
        named: "Mapping[str, str] | None" = None,
        between: tuple[str, str] = (", ", ""),
    ) -> None:
        self.usage, self.groups, self.named = usage, groups, named or {}
        self.unlisted, self.between = frozenset(unlisted.split()), between


PAGES = {
    "sbatch": Page(
        "Usage: sbatch [OPTIONS(0)...] [ : [OPTIONS(N)...]] script(0) [args(0)...]\n\n"
        "Parallel run options:",
        _JOB_GROUPS,
        "acctg-freq batch kill-on-invalid-dep network ntasks-per-gpu open-mode prefer test-only "
        "wait-all-nodes",
    ),
    "salloc": Page(
        "Usage: salloc [OPTIONS(0)...] [ : [OPTIONS(N)...]] [command(0) [args(0)...]]\n\n"
        "Parallel run options:",
        _JOB_GROUPS,
        "acctg-freq network no-shell ntasks-per-gpu prefer wait-all-nodes",
    ),
    "srun": Page(
        "Usage: srun [OPTIONS(0)... [executable(0) [args(0)...]]] [ : [OPTIONS(N)...]] "
        "executable(N) [args(N)...]\n\nParallel run options:",
        _JOB_GROUPS,
        "gid network nodefile ntasks-per-gpu open-mode prefer test-only uid whole",
    ),
    "squeue": Page(
        "Usage: squeue [OPTIONS]",
        unlisted="me priority",
        named={"accounts": "account", "jobs": "job", "partitions": "partition", "steps": "step"},
    ),
    "sinfo": Page("Usage: sinfo [OPTIONS]"),
    "scancel": Page("Usage: scancel [OPTIONS] [job_id[_array_id][.step_id]]", unlisted="me"),
    "sprio": Page("Usage: sprio [OPTIONS]", unlisted="sort", named={"clusters": "cluster"}),
    "sdiag": Page("Usage: sdiag [OPTIONS]", named={"clusters": "cluster"}),
    "strigger": Page(
        "Usage: strigger [--set | --get | --clear] [OPTIONS]", named={"clusters": "cluster"}
    ),
    "scrontab": Page("Usage: scrontab [OPTIONS] [FILE | -]"),
    "smap": Page("Usage: smap [OPTIONS]"),
    "sattach": Page("Usage: sattach [options] <jobid.stepid>"),
    "sbcast": Page("Usage: sbcast [OPTIONS] SOURCE DEST"),
    "sshare": Page(
        "Usage:  sshare [OPTION]\n  Valid OPTIONs are:",
        (),
        named={"clusters": "cluster"},
        between=(" or ", ""),
    ),
    "sstat": Page(f"sstat [<OPTION>] -j <job(.stepid)>\n{_VALUES}", (), between=(", ", ":")),
    "sacct": Page(
        f"sacct [<OPTION>]\n{_VALUES}",
        (),
        "constraints flags reason use-local-uid",
        named={"gid": "gid, --group", "uid": "uid, --user"},
        between=(", ", ":"),
    ),
    "sacctmgr": Page(
        f"sacctmgr [<OPTION>] [<COMMAND>]\n{_VALUES}", (), "usage", between=(" or ", ":")
    ),
    "sreport": Page(
        f"sreport [<OPTION>] [<COMMAND>]\n{_VALUES}",
        (),
        "cluster usage",
        between=(" or ", ":"),
    ),
    "scontrol": Page(
        f"scontrol [<OPTION>] [<COMMAND>]\n{_VALUES}",
        (),
        "usage",
        named={"clusters": "cluster"},
    ),
}


def help_page(program: str, table: "OptionTable") -> str:
    """What `program --help` prints of its options."""
    page = PAGES[program]
    in_group = {name: heading for heading, names in page.groups for name in names.split()}
    found: dict[str, list[str]] = {page.usage: [], **{heading: [] for heading, _ in page.groups}}
    for option in table.options:
        if option.help and option.long not in page.unlisted:
            found[in_group.get(option.long, page.usage)].append(_line(option, page))
    return "\n\n".join("\n".join([heading, *lines]) for heading, lines in found.items()) + "\n"


def _line(option: "Option", page: Page) -> str:
    before, _, what = option.help.partition(": ") if option.value != NONE else ("", "", option.help)
    if not what:
        before, what = "", before
    short = f"-{option.short}" if option.short else ""
    long = f"--{page.named.get(option.long, option.long)}" if option.long else ""
    if before and long:
        long += f"[={before}]" if option.value == OPTIONAL else f"={before}"
    between, behind = page.between
    names = between.join(name for name in (short, long) if name) if short else "    " + long
    names += behind
    return f"  {names:<32}  {what}" if len(names) <= 32 else f"  {names}\n{'':36}{what}"
