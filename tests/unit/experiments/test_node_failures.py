"""Failures of nodes by models and as recorded."""

import math
from itertools import islice, pairwise, takewhile

import pytest

from understudy.experiments.faults import Fault
from understudy.experiments.node_failures import FailuresError, Model

NODES = [f"n{number}" for number in range(1, 51)]
YEAR_S = 365 * 86_400.0


def of_a_year(text, seed=1, racks=None):
    failures = Model.read(text).failures(NODES, racks or {}, seed)
    return list(takewhile(lambda fault: fault.at < YEAR_S, failures))


@pytest.mark.parametrize("model", ["exponential:mtbf=10d", "weibull:mtbf=10d,shape=0.7"])
@pytest.mark.parametrize("repairs", ["fixed", "exponential", "lognormal"])
def test_means_are_those_that_were_asked_for(model, repairs):
    found = of_a_year(f"{model},repair=4h,repairs={repairs}")
    expected = len(NODES) * YEAR_S / (10 * 86_400 + 4 * 3600)
    assert len(found) == pytest.approx(expected, rel=0.1)
    assert sum(each.lasts_s for each in found) / len(found) == pytest.approx(4 * 3600, rel=0.1)


def test_a_shape_below_one_has_failures_come_in_bursts():
    def spread(text):
        of_one = [each.at for each in of_a_year(text) if each.of == "n1"]
        gaps = [later - at for at, later in pairwise(of_one)]
        mean = sum(gaps) / len(gaps)
        return math.sqrt(sum((gap - mean) ** 2 for gap in gaps) / len(gaps)) / mean

    assert spread("weibull:mtbf=1d,shape=0.5") > 1.5 * spread("weibull:mtbf=1d,shape=2")


def test_they_come_in_order_and_no_node_fails_while_it_is_away():
    found = of_a_year("exponential:mtbf=5d,repair=2d")
    assert [each.at for each in found] == sorted(each.at for each in found)
    for node in NODES:
        of_node = [each for each in found if each.of == node]
        assert all(each.at + each.lasts_s <= later.at for each, later in pairwise(of_node))


def test_a_node_fails_at_the_same_instants_whatever_others_there_are():
    model = Model.read("weibull:mtbf=1d,shape=0.7,repair=1h")
    alone = list(islice(model.failures(["n7"], {}, 3), 20))
    among = [each for each in islice(model.failures(NODES, {}, 3), 4000) if each.of == "n7"]
    assert among[:20] == alone
    assert list(islice(model.failures(["n7"], {}, 4), 20)) != alone


def test_some_take_the_whole_rack():
    rack = NODES[:10]
    found = of_a_year("exponential:mtbf=5d,together=0.3", racks=dict.fromkeys(rack, rack))
    of_rack = [each for each in found if each.of == "n[1-10]"]
    of_its_nodes = [each for each in found if each.of in rack]
    share = len(of_rack) / (len(of_rack) + len(of_its_nodes))
    assert share == pytest.approx(0.3, abs=0.05)


def test_recorded_failures_are_read(tmp_path):
    path = tmp_path / "failures.csv"
    path.write_text('nodes,down,up,why\n"n[1-2],n5",60,90.5,disk\nn3,60,61,\n')
    found = list(Model.read(f"trace:file={path}").failures(NODES, {}, 1))
    assert found == [Fault(60.0, "crash", "n[1-2],n5", 30.5), Fault(60.0, "crash", "n3", 1.0)]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("when,down\n", "line 1: no columns nodes, down, up"),
        ("nodes,down,up\nn1,soon,9\n", "line 2: down and up are numbers"),
        ("nodes,down,up\nn1,9,9\n", "line 2: in order of down, and each up after its down"),
        ("nodes,down,up\nn1,9,10\nn1,8,10\n", "line 3: in order"),
    ],
)
def test_what_is_wrong_with_recorded_failures_is_said_with_its_line(tmp_path, text, error):
    path = tmp_path / "failures.csv"
    path.write_text(text)
    with pytest.raises(FailuresError, match=error):
        list(Model.read(f"trace:file={path}").failures(NODES, {}, 1))


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(FailuresError, match=r"none\.csv: No such file"):
        list(Model.read(f"trace:file={tmp_path}/none.csv").failures(NODES, {}, 1))


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("gamma:mtbf=1d", "'gamma' is none of exponential, weibull, trace"),
        ("weibull:mtbf=1d", "weibull needs shape="),
        ("exponential:mtbf=1d,shape=2", "shape: exponential knows mtbf, repair"),
        ("exponential:mtbf=never", "mtbf: 'never' is not a number"),
        ("exponential:mtbf=1d,repairs=soon", "repairs: 'soon' is none of fixed"),
        ("exponential:mtbf=1d,together=2", "together: 2 is not a probability"),
        ("trace:", "trace needs file="),
    ],
)
def test_a_model_that_is_none_is_said(text, error):
    with pytest.raises(FailuresError, match=error):
        Model.read(text)
