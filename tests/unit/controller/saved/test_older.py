"""What older programs have written."""

from understudy.controller.saved.older import current
from understudy.protocol.messages import JobSpec


def test_what_were_texts_of_a_job_comes_back_in_fields() -> None:
    texts = {"spread_job": "1", "sockets_per_node": "2", "exclusive": "user", "switches": "3@1:30"}
    texts |= {"kill_on_invalid_dep": "no", "site_factor": "-7", "network": "sn_all"}
    spec = current(JobSpec(name="old", extra=texts))
    assert (spec.name, spec.spread_job, spec.use_min_nodes) == ("old", True, False)
    assert (spec.sockets_per_node, spec.cores_per_socket) == (2, None)
    assert (spec.exclusive_for, spec.switches, spec.switches_wait_s) == ("user", 3, 90)
    assert (spec.kill_on_invalid_dep, spec.site_factor) == (False, -7)
    assert spec.extra == {"network": "sn_all"}


def test_what_is_of_today_stays_as_it_is() -> None:
    spec = JobSpec(switches=2, extra={"network": "sn_all"})
    assert current(spec) is spec
