"""Jobs that the controller does not let start, though there are nodes for them, and limits of
nought.
"""

import pytest
from scheduling_harness import World, table

from understudy.controller.scheduling.plan_based.policy import PlanBased
from understudy.controller.scheduling.select.cons_tres import SelectConsTres
from understudy.controller.scheduling.textbook.bbsched import BBSched
from understudy.controller.scheduling.textbook.conservative import Conservative
from understudy.controller.scheduling.textbook.easy import Easy
from understudy.controller.scheduling.textbook.fcfs import Fcfs
from understudy.controller.scheduling.textbook.variants import EasyBb, Filler, SjfBb

POLICIES = [
    *((policy, {}) for policy in (Fcfs, Easy, EasyBb, SjfBb, Filler, Conservative, PlanBased)),
    *((BBSched, {"bbs_order": order}) for order in ("fcfs", "wfp")),
    (EasyBb, {"reservation_depth": "3"}),
    (PlanBased, {"plan_search": "random", "plan_tries": "2"}),
]


class OneAtATime(World):
    """Each account may have one job."""

    def start(self, ask, allocation, now):
        account = ask.job.spec.account
        if any(job.spec.account == account for job in self.tables.running.values()):
            ask.job.reason = "AssocMaxJobsLimit"
            return False
        return super().start(ask, allocation, now)


def world(policy, words, nodes=4):
    return OneAtATime(table(nodes), policy, SelectConsTres(frozenset({"CR_CPU"})), words)


@pytest.mark.parametrize(("policy", "words"), POLICIES)
def test_nobody_waits_behind_a_job_that_a_limit_keeps(policy, words):
    w = world(policy, words)
    for account, run_s in (("ada", 300), ("ada", 300), ("bob", 240), ("bob", 240)):
        w.submit(at=0, run_s=run_s, limit_s=300, cpus=2, account=account)
    w.run()
    assert w.starts == {1: 0, 3: 0, 4: 240, 2: 300}


@pytest.mark.parametrize(("policy", "words"), POLICIES)
def test_it_is_told_the_limit(policy, words):
    w = world(policy, words)
    w.submit(at=0, run_s=300, limit_s=300, cpus=1, account="ada")
    kept = w.submit(at=0, run_s=300, limit_s=300, cpus=1, account="ada")
    w.run(until=100)
    assert kept.reason == "AssocMaxJobsLimit"
    assert kept.expected_start is None


@pytest.mark.parametrize(("policy", "words"), POLICIES)
def test_a_limit_may_have_been_taken_down_to_nothing(policy, words):
    w = world(policy, words)
    for number in range(6):
        w.submit(at=number, run_s=20, limit_s=0 if number % 2 else 20, cpus=3, account=str(number))
    w.run()
    assert sorted(w.starts) == [1, 2, 3, 4, 5, 6]
