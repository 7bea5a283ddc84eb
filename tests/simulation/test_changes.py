"""Whole clusters whose slurm.conf, nodes and partitions change under running jobs. More seeds by
hand: tests/simulation/changes.py.

Covers: controller/edge/reconfigure, controller/saved/node_order.
"""

import pytest
from simulation.changes import Changing
from simulation.clusters import simulate


@pytest.mark.parametrize("seed", [*range(1, 9), 106, 110])
def test_whatever_is_changed_tables_are_right_and_all_jobs_come_to_an_end(seed):
    outcome = simulate(seed, kind=Changing)
    assert outcome.events > 0


def test_the_same_seed_goes_the_same_way_to_the_last_message():
    assert simulate(4, kind=Changing).log == simulate(4, kind=Changing).log
