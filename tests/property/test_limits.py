"""Whatever is submitted, ends, is cancelled or changed: no limit is exceeded, and sums that are
kept are those that a recount finds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from controller_harness import OTHER, USER
from enforcement_harness import House, sums
from hypothesis import given, settings
from hypothesis import strategies as st

from understudy.model.errors import ErrorCode
from understudy.protocol.messages import CancelJobs, Emulation, Failure, JobSpec, SubmitJob

if TYPE_CHECKING:
    from collections.abc import Callable

SMALL = st.integers(0, 12)
LIMITS: dict[str, Any] = {
    "grp_jobs": SMALL,
    "grp_submit_jobs": st.integers(3, 9),
    "grp_tres": st.fixed_dictionaries(
        {}, optional={"cpu": SMALL, "node": st.integers(0, 3), "mem": st.integers(0, 99)}
    ),
    "grp_tres_run_mins": st.fixed_dictionaries({}, optional={"cpu": st.integers(0, 60)}),
}
OF_QOS: dict[str, Any] = LIMITS | {
    "max_jobs_per_user": SMALL,
    "max_jobs_per_account": SMALL,
    "max_tres_per_user": st.fixed_dictionaries(
        {}, optional={"cpu": SMALL, "node": st.integers(0, 3)}
    ),
    "max_tres_per_account": st.fixed_dictionaries({}, optional={"cpu": SMALL}),
}
SUBMIT = st.tuples(
    st.just("submit"),
    st.fixed_dictionaries(
        {
            "num_tasks": st.integers(1, 9),
            "time_limit_s": st.sampled_from((60, 120, 300)),
            "mem_per_cpu_mb": st.integers(1, 20),
        },
        optional={
            "qos": st.just("q"),
            "array": st.sampled_from(("0-2", "0-4%2")),
            "hold": st.just(value=True),
        },
    ),
)
STEPS = st.lists(
    st.one_of(
        SUBMIT,
        st.tuples(st.just("finish"), SMALL),
        st.tuples(st.just("cancel"), SMALL),
        st.tuples(st.just("wait"), st.integers(1, 70)),
        st.tuples(st.just("limit"), st.fixed_dictionaries({"grp_jobs": SMALL})),
    ),
    min_size=4,
    max_size=25,
)


def recount(house: House) -> dict[str, Any]:
    """The sums of jobs and resources made from the jobs themselves."""
    found: dict[str, list[Any]] = {}
    for job in house.core.tables.jobs.values():
        if job.is_finished:
            continue
        qos, bottom = (
            job.spec.qos,
            {"lower": "a4" if job.user_id == 1000 else "a5", "other": "a7"}[job.spec.account],
        )
        chain = {"lower": ["a3", "a2", "a1"], "other": ["a6", "a1"]}[job.spec.account]
        for where in (bottom, *chain, qos, f"{qos} {job.user_id}", f"{qos} {job.spec.account}"):
            entry = found.setdefault(where, [0, 0, {}])
            entry[1] += job.array_tasks.bit_count() or 1
            if job.allocation is not None and job.is_running:
                entry[0] += 1
                memory = sum(
                    group.memory_mb * group.nodes.bit_count() for group in job.allocation.groups
                )
                held = {
                    "cpu": job.allocation.cpus,
                    "billing": job.allocation.cpus,
                    "node": job.allocation.node_count,
                    "mem": memory,
                }
                for name, amount in held.items():
                    entry[2][name] = entry[2].get(name, 0) + amount
    return {where: tuple(entry) for where, entry in found.items()}


def check_limits(house: House, changed: set[str], of_q: set[str]) -> None:
    """No sum is above its limit, unless the limit was lowered since, or the QOS states one of its
    own (`of_q`).
    """
    limits = house.limits
    upper, of_upper = house.core.associations.associations[2], limits.of_association[2]
    qos, of_qos = house.core.associations.qos["q"], limits.of_qos["q"]
    upper = msgspec.structs.replace(
        upper, **{name: {} if "tres" in name else None for name in (of_q | changed) & LIMITS.keys()}
    )
    for rules, use in ((upper, of_upper), (qos, of_qos.whole)):
        assert "grp_jobs" in changed or rules.grp_jobs is None or use.jobs <= rules.grp_jobs
        assert rules.grp_submit_jobs is None or use.submitted <= rules.grp_submit_jobs
        for name, limit in rules.grp_tres.items():
            assert (use.nodes.bit_count() if name == "node" else use.tres.get(name, 0)) <= limit
        for name, limit in rules.grp_tres_run_mins.items():
            assert use.run_s.get(name, 0) // 60 <= limit
    for use in of_qos.by_user.values():
        assert qos.max_jobs_per_user is None or use.jobs <= qos.max_jobs_per_user
        for name, limit in qos.max_tres_per_user.items():
            assert (use.nodes.bit_count() if name == "node" else use.tres.get(name, 0)) <= limit
    for use in of_qos.by_account.values():
        assert qos.max_jobs_per_account is None or use.jobs <= qos.max_jobs_per_account
        for name, limit in qos.max_tres_per_account.items():
            assert use.tres.get(name, 0) <= limit


@settings(deadline=None, max_examples=40)
@given(
    of_upper=st.fixed_dictionaries({}, optional=LIMITS),
    of_q=st.fixed_dictionaries({}, optional=OF_QOS),
    steps=STEPS,
    users=st.data(),
)
def test_no_limit_is_exceeded_and_sums_are_right(
    of_upper: dict[str, Any], of_q: dict[str, Any], steps: list[tuple[str, Any]], users: Any
) -> None:
    house = House()
    house.set_association(2, **of_upper)
    house.set_qos("q", **of_q)
    changed: set[str] = set()
    # who needs more is refused as if there were no more, as in Slurm
    caps_nodes = "node" in f"{of_upper}{of_q}{steps}"

    def submit(spec: dict[str, Any]) -> None:
        sender = users.draw(st.sampled_from((USER, OTHER)))
        answer = house.ask(
            SubmitJob(JobSpec(name="j", work_dir="/", **spec), "#!/bin/sh\n", Emulation(100.0)),
            sender,
        )
        codes = (
            (ErrorCode.VIOLATES_POLICY, ErrorCode.NOT_AVAILABLE)
            if caps_nodes
            else (ErrorCode.VIOLATES_POLICY,)
        )
        assert not isinstance(answer, Failure) or answer.code in codes

    def finish(number: int) -> None:
        running = list(house.core.tables.running.values())
        if running:
            job = running[number % len(running)]
            house.acknowledge()
            house.finish(job)
            house.acknowledge()
            house.epilog(job)

    def cancel(number: int) -> None:
        jobs = [*house.core.tables.pending, *house.core.tables.running]
        if jobs:
            house.ask(CancelJobs([str(jobs[number % len(jobs)])]), USER)

    def limit(limits: dict[str, Any]) -> None:
        changed.update(limits)
        house.set_qos("q", **limits)

    actions: dict[str, Callable[[Any], None]] = {
        "submit": submit,
        "finish": finish,
        "cancel": cancel,
        "limit": limit,
        "wait": house.run,
    }
    for what, how in steps:
        actions[what](how)
        house.acknowledge()
        house.run(5)
        kept = {where: values[:3] for where, values in sums(house.limits).items()}
        assert {where: values for where, values in kept.items() if any(values)} == recount(house)
        check_limits(house, changed, set(of_q))
    house.limits.advance(house.time.now())  # periods that are over are counted when somebody asks
    before = sums(house.limits)
    house.set_qos("q", priority=3)
    assert sums(house.limits) == before
