"""`--help` has Slurm's headings, and under each the options that are there in 22.05.8.

Covers: commands/shared/help_pages, commands/scontrol/help_words, commands/sacctmgr/help_words,
commands/sreport/help_words.
"""

import json
import re
from importlib import import_module
from pathlib import Path

import pytest
from fake_controller import FakeClient, run_command

from understudy.commands.scontrol.scontrol import KEYWORDS
from understudy.tool.manual.catalogue import module_of

# By command and heading the long options, and behind "Valid <COMMAND> values are:" the commands.
OF_SLURM = json.loads((Path(__file__).parent / "help_of_slurm.json").read_text())
# of tasks and CPUs; Slurm lists them where TaskPlugin binds, and -t without its long name
BINDINGS = {"cpu-bind", "hint", "mem-bind", "time"}


OPTION = r"\s+(?:-\w(?: or|,)?\s+)?--([A-Za-z_0-9-]+)"
COMMAND = r"     ([a-z_!]+)"


def help_of(name):
    return run_command(
        getattr(import_module(module_of(name)), name), "--help", client=FakeClient()
    ).lines


def in_groups(lines):
    found, heading = {}, ""
    for line in lines:
        if re.match(r"\S.*:|\s+Valid .* are:", line):
            heading = line.strip()
        is_command = "COMMAND" in heading
        match = re.match(COMMAND if is_command else OPTION, line)
        if match:
            found.setdefault(heading, set()).add(match[1])
    return found


@pytest.mark.parametrize("name", OF_SLURM)
def test_options_are_under_slurms_headings(name):
    ours = in_groups(help_of(name))
    assert list(ours) == list(OF_SLURM[name])
    for heading, names in OF_SLURM[name].items():
        assert ours[heading] - set(names) <= BINDINGS | {"getent"}
        assert set(names) <= ours[heading]


def test_every_command_of_scontrol_is_in_its_help():
    words = in_groups(help_of("scontrol"))["Valid <COMMAND> values are:"]
    assert {keyword.name for keyword in KEYWORDS} - words == {"holdjob"}


def test_keys_and_fields_of_entities_are_in_the_help_of_sacctmgr():
    text = "\n".join(help_of("sacctmgr"))
    assert re.search(r"modify account +- \(set options\) DefaultQOS=", text)
    assert re.search(r"Wckey +- WCKeys, Cluster, User", text)


def test_a_flag_takes_no_value_however_its_text_reads():
    assert "  -d, --down                        event: a node goes DOWN" in help_of("strigger")
