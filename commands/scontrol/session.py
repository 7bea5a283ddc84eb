"""What the options of scontrol, and keywords of its interactive mode, have set."""

import os

from understudy.commands.shared.context import Context
from understudy.commands.shared.options import NONE, REQUIRED, Option, OptionTable

OPTIONS = OptionTable(
    [
        Option("all", "a", NONE, "show hidden partitions, too", env="SCONTROL_ALL"),
        Option("cluster", "", REQUIRED, "", dest="clusters"),
        Option("clusters", "M", REQUIRED, "NAME: cluster to ask", env="SLURM_CLUSTERS"),
        Option("details", "d", NONE, "more about each record"),
        Option(
            "federation",
            "",
            NONE,
            "accepted; this cluster is in no federation",
            env="SCONTROL_FEDERATION",
        ),
        Option("future", "F", NONE, "show nodes in state FUTURE, too", env="SCONTROL_FUTURE"),
        Option("help", "h", NONE, "print this text", dest="full_help"),
        Option("hide", "", NONE, "leave out hidden partitions"),
        Option("local", "", NONE, "accepted; only this cluster is shown", env="SCONTROL_LOCAL"),
        Option("oneliner", "o", NONE, "each record on one line"),
        Option("quiet", "Q", NONE, "print no errors"),
        Option(
            "sibling", "", NONE, "accepted; this cluster is in no federation", env="SCONTROL_SIB"
        ),
        Option("uid", "u", REQUIRED, "USER: update jobs as this user"),
        Option("usage", "", NONE, "print this text", dest="full_help"),
        Option("verbose", "v", NONE, "say more"),
        Option("version", "V", NONE, "print the version"),
    ]
)


class Session:
    """What the options, and keywords of the interactive mode, have set."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.one_line = False
        self.details = False
        self.all = False
        self.future = False
        self.quiet = False
        self.verbose = False
        self.ended = False

    @property
    def shows_all(self) -> bool:
        """Nothing is hidden from root."""
        return self.all or os.geteuid() == 0

    def show_help(self) -> None:
        """Options and keywords."""
        from understudy.commands.scontrol.help_words import HELP

        self.context.help(OPTIONS, HELP)

    def complain(self, text: str) -> None:
        """On stderr, unless it is to be quiet."""
        if not self.quiet:
            self.context.complain(text)

    def error(self, text: str) -> None:
        """The same as a logged error."""
        if not self.quiet:
            self.context.error(text)

    def say(self, text: str) -> None:
        """On stdout, unless it is to be quiet."""
        if not self.quiet:
            self.context.print(text)
