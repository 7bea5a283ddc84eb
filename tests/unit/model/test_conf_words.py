"""Words of lists in slurm.conf: those that nobody knows are named, those of other versions too, and
plug-ins declare theirs.

Covers: commands/shared/conf_words.
"""

import re
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from understudy.controller.scheduling.registry import policy_parameters, scheduler
from understudy.model.conf import read_text
from understudy.model.conf_check import not_emulated, strange_words
from understudy.model.conf_keys import GLOBAL_KEYS
from understudy.model.conf_words import WORDS
from understudy.model.scheduler_parameters import complaints

BASE = (
    "ClusterName=c\nSlurmctldHost=localhost\nSelectType=select/cons_tres\nNodeName=n1\n"
    "PartitionName=p Nodes=n1\n"
)


def said(line: str, **declared: frozenset[str]) -> list[str]:
    config = read_text(BASE + line + "\n")
    return [finding.message for finding in [*config.errors, *strange_words(config, declared)]]


def test_a_word_that_nobody_knows_is_named_with_the_one_that_may_be_meant() -> None:
    assert said("SchedulerParameters=bf_windw=3,bf_continue") == [
        "SchedulerParameters has no word bf_windw=3 (is bf_window meant?): it has no effect"
    ]


def test_a_word_of_another_version_is_a_warning_also_where_slurm_would_not_start() -> None:
    config = read_text(BASE + "TaskPluginParam=Sched\nSchedulerParameters=kill_invalid_depend\n")
    assert not config.errors
    assert len(strange_words(config, {})) == 2


@pytest.mark.parametrize(
    ("line", "text"),
    [
        # texts of slurmctld 22.05.8
        ("SelectTypeParameters=CR_FOO", "Bad SelectTypeParameter: CR_FOO"),
        ("TaskPluginParam=xyzzy", "Bad TaskPluginParam: xyzzy"),
        ("AccountingStorageEnforce=xyzzy", "Invalid parameter for AccountingStorageEnforce: xyzzy"),
        ("PropagateResourceLimits=CORE,FOO", "Bad rlimit name: FOO"),
        ("PreemptMode=xyzzy", "PreemptMode=xyzzy invalid"),
        ("EnforcePartLimits=xyzzy", "Bad EnforcePartLimits: xyzzy"),
        ("DebugFlags=xyzzy", "Invalid DebugFlag: xyzzy"),
        ("PriorityUsageResetPeriod=xyzzy", 'Bad value "xyzzy" for PriorityUsageResetPeriod'),
    ],
)
def test_words_with_which_slurm_does_not_start_are_errors(line: str, text: str) -> None:
    assert [finding.message for finding in read_text(BASE + line + "\n").errors] == [text]


@pytest.mark.parametrize("key", sorted(WORDS))
def test_every_list_names_a_word_that_it_does_not_have(key: str) -> None:
    (message,) = said(f"{GLOBAL_KEYS[key].name}=no_such_word_{key}")
    assert f"no_such_word_{key}" in message


@pytest.mark.parametrize("key", sorted(WORDS))
def test_no_word_of_a_list_is_complained_about(key: str) -> None:
    for word in sorted(WORDS[key].acts | WORDS[key].idle):
        refusal = WORDS[key].refusal.format(word=word)
        assert not [
            text
            for text in said(f"{GLOBAL_KEYS[key].name}={word}")
            if "no word" in text or text == refusal
        ]


def test_words_without_effect_are_among_what_has_none() -> None:
    config = read_text(BASE + "SchedulerParameters=bf_licenses,bf_window=60\n")
    assert not_emulated(config) == ["SchedulerParameters=bf_licenses"]


def test_a_plug_in_declares_its_words() -> None:
    assert said("SchedulerParameters=my_depth=3", schedulerparameters=frozenset({"my_depth"})) == []


def test_a_selector_of_others_may_have_words_that_slurm_would_not_take() -> None:
    assert not read_text(BASE + "SelectType=select/mine\nSelectTypeParameters=MY_WAY\n").errors


def test_all_words_that_schedulers_read_are_known() -> None:
    """What the code looks for is in the table as having an effect, or a policy declares it."""
    controller = Path(__file__).parents[3] / "controller"
    text = "\n".join(path.read_text() for path in controller.rglob("*.py"))
    read = set(re.findall(r'number\((?:self\.)?parameters, "(\w+)"', text)) | set(
        re.findall(r'"([a-z_]+)" in ' r"(?:self\.)?parameters\b", text)
    )
    assert len(read) > 25
    ours = entry_points(group="understudy.schedulers")
    declared = {word for each in ours for word in scheduler(each.name).parameter_words}
    assert read <= WORDS["schedulerparameters"].acts | declared


def test_a_second_equals_sign_is_passed_over_as_slurm_does() -> None:
    assert said("SchedulerParameters==bf_window=abc,bf_continue") == []
    assert policy_parameters("=bf_window=60,bf_continue") == {"bf_window": "60", "bf_continue": ""}
    assert list(complaints("=bf_window=abc")) == ["Invalid SchedulerParameters bf_window: 0"]
