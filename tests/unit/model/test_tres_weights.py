"""Weights of trackable resources, as 22.05.8 takes and refuses them."""

import pytest

from understudy.model.tres import BASE, TresError
from understudy.model.tres_weights import read_weights


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("", {}),
        ("CPU=1.0,Mem=0.25G,GRES/gpu=2.0", {"cpu": 1.0, "mem": 0.25 / 1024, "gres/gpu": 2.0}),
        ("cpu=1,,mem=2", {"cpu": 1.0, "mem": 2.0}),
        ("mem=1GB,fs/disk=1T,vmem=1m", {"mem": 1 / 1024, "fs/disk": 1 / 1024**2, "vmem": 1.0}),
        ("cpu=2k,bb/lua=1g", {"cpu": 2 / 1024, "bb/lua": 1 / 1024}),
        ("cpu=-1,node=1e3,energy=0x10,billing=.5", {
            "cpu": -1.0, "node": 1000.0, "energy": 16.0, "billing": 0.5}),
        ("cpu=1,cpu=2", {"cpu": 2.0}),
    ],
)  # fmt: skip
def test_what_one_of_each_resource_weighs(text: str, weights: dict[str, float]) -> None:
    assert read_weights(text) == weights


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cpu=1,xyz=3", "TRES weight 'xyz' is not a configured TRES type."),
        ("GRES/gpu:a100=3", "TRES weight 'GRES:gpu:a100' is not a configured TRES type."),
        ("cpu=3, mem=2", "TRES weight ' mem' is not a configured TRES type."),
        ("cpu", '"cpu" is an invalid TRES weight entry'),
        ("cpu=", '"cpu" is an invalid TRES weight entry'),
        ("=3", '"=3" is an invalid TRES weight entry'),
        ("cpu=abc", "Invalid unit type 'a'. Possible options are 'KMGTP'"),
        ("cpu=1.5.2", "Invalid unit type '.'. Possible options are 'KMGTP'"),
    ],
)
def test_words_that_are_no_weight_are_refused(text: str, said: str) -> None:
    with pytest.raises(TresError) as caught:
        read_weights(text, {*BASE, "gres/gpu"})
    assert str(caught.value) == said
