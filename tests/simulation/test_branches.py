"""A run is forked at random instants, and what is not changed becomes what it becomes without.

Covers: tool/replay/forks.
"""

import pytest
from simulation.branches import run_seed


@pytest.mark.parametrize("seed", range(201, 209))
def test_an_unchanged_future_and_the_original_are_to_the_byte_what_a_run_without_forks_is(
    seed, tmp_path
):
    assert run_seed(seed, tmp_path, jobs=15).at >= 0


@pytest.mark.parametrize("seed", range(301, 305))
def test_so_it_is_where_daemons_die_and_come_back_to_their_state(seed, tmp_path):
    assert run_seed(seed, tmp_path, jobs=12, faulty=True).at >= 0
