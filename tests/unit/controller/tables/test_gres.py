"""What nodes have, from the configuration, and who holds it."""

from pathlib import Path

import pytest

from understudy.controller.edge.build import build_tables
from understudy.controller.tables.allocation import Allocation, NodeShare, ShareGroup
from understudy.controller.tables.gres import DeviceGroup, GresTable, Held
from understudy.controller.tables.gres_layout import Layouts, gres_text, read_cores
from understudy.model import conf

HEAD = "ClusterName=c\nSlurmctldHost=h\nGresTypes=gpu,tape\n"


def read(tmp_path: Path, nodes: str, gres: str = "") -> conf.SlurmConfig:
    (tmp_path / "slurm.conf").write_text(HEAD + nodes)
    (tmp_path / "gres.conf").write_text(gres)
    return conf.read(tmp_path / "slurm.conf")


def test_gres_conf_says_which_devices_are_near_which_cores(tmp_path: Path) -> None:
    config = read(
        tmp_path, "NodeName=n[1-2] CPUs=8 Gres=gpu:a:4,tape:2\n",
        "NodeName=n1 Name=gpu Type=a File=/dev/g[0-1] Cores=0-3\n"
        "NodeName=n1 Name=gpu Type=a File=/dev/g[2-3] Cores=4-7\n"
        "Name=tape Count=2\n",
    )  # fmt: skip
    layouts = Layouts(config)
    assert layouts.of("n1", "gpu:a:4,tape:2") == (
        DeviceGroup("gpu", "a", 2, 0, has_files=True, cores=0x0F),
        DeviceGroup("gpu", "a", 2, 2, has_files=True, cores=0xF0),
        DeviceGroup("tape", "", 2),
    )  # fmt: skip
    assert layouts.of("n2", "gpu:a:4,tape:2") == (
        DeviceGroup("gpu", "a", 4),
        DeviceGroup("tape", "", 2),
    )
    assert (
        gres_text(
            "gpu:a:4,tape:2", layouts.of("n1", "gpu:a:4,tape:2"), cores_per_socket=4, sockets=2
        )
        == "gpu:a:4(S:0-1),tape:2"
    )


def test_types_that_a_node_line_leaves_out_come_from_gres_conf(tmp_path: Path) -> None:
    config = read(
        tmp_path,
        "NodeName=n1 Gres=gpu:3\n",
        "Name=gpu Type=a File=/dev/g0\nName=gpu Type=b File=/dev/g[1-2]\n",
    )
    assert [
        (group.type, group.count, group.first) for group in Layouts(config).of("n1", "gpu:3")
    ] == [("a", 1, 0), ("b", 2, 1)]


def test_a_cluster_without_generic_resources_has_no_table(tmp_path: Path) -> None:
    assert build_tables(read(tmp_path, "NodeName=n[1-2] CPUs=8\n"))[0].nodes.gres is None
    table = build_tables(
        read(tmp_path, "NodeName=n1 CPUs=8 Gres=gpu:2,disk:7\nNodeName=n2 CPUs=8\n")
    )[0].nodes.gres
    assert table is not None
    assert {key: vector.tolist() for key, vector in table.total.items()} == {"gpu": [2, 0]}


def test_taking_and_giving_back() -> None:
    layout = (
        DeviceGroup("gpu", "a", 2, 0, has_files=True),
        DeviceGroup("gpu", "b", 2, 2, has_files=True),
    )
    table = GresTable(("gpu",), [layout, layout])
    held = (Held("gpu", "a", 1, 0b01), Held("gpu", "b", 1, 0b100))
    table.take([0], held)
    assert {key: vector.tolist() for key, vector in table.free.items()} == {
        "gpu": [2, 4],
        "gpu:a": [1, 2],
        "gpu:b": [1, 2],
    }
    with pytest.raises(AssertionError, match="given twice"):
        table.take([0], (Held("gpu", "a", 1, 0b01),))
    table.give_back([0], held)
    assert table.free["gpu"].tolist() == [4, 4]
    assert table.used_devices["gpu"] == [0, 0]


def test_a_node_may_get_other_resources_while_jobs_hold_some() -> None:
    table = GresTable(("gpu",), [(DeviceGroup("gpu", "", 4),), ()])
    table.take([0], (Held("gpu", "", 3, 0),))
    table.set_layout(0, (DeviceGroup("gpu", "a", 2),))
    assert table.total["gpu"].tolist() == [2, 0]
    assert table.free["gpu"].tolist() == [-1, 0]


def test_devices_that_jobs_hold_are_not_free_when_they_have_been_away() -> None:
    table = GresTable(("gpu",), [(DeviceGroup("gpu", "", 3),)])
    held = (Held("gpu", "", 1, 0b1),)
    table.take([0], held)
    table.set_layout(0, ())
    assert table.free["gpu"].tolist() == [-1]
    table.set_layout(0, (DeviceGroup("gpu", "", 3),))
    assert table.free["gpu"].tolist() == [2]
    table.give_back([0], held)
    assert table.free["gpu"].tolist() == [3]


def test_of_a_type_no_more_is_free_than_of_its_name() -> None:
    table = GresTable(("gpu",), [(DeviceGroup("gpu", "", 1),)])
    untyped, first = (Held("gpu", "", 1, 0),), (Held("gpu", "a", 1, 0),)
    table.take([0], untyped)
    table.set_layout(0, (DeviceGroup("gpu", "a", 1), DeviceGroup("gpu", "b", 2)))
    assert _free(table) == {"gpu": [2], "gpu:a": [1], "gpu:b": [2]}
    table.take([0], first)
    assert _free(table) == {"gpu": [1], "gpu:a": [0], "gpu:b": [1]}
    table.give_back([0], untyped)
    assert _free(table) == {"gpu": [2], "gpu:a": [0], "gpu:b": [2]}
    table.give_back([0], first)
    assert _free(table) == {"gpu": [3], "gpu:a": [1], "gpu:b": [2]}


def _free(table: GresTable) -> dict[str, list[int]]:
    return {key: vector.tolist() for key, vector in table.free.items()}


def test_an_allocation_keeps_its_devices_when_it_is_packed() -> None:
    held = (Held("gpu", "a", 2, 0b101), Held("tape", "", 1, 0))
    allocation = Allocation.of_shares([NodeShare(0, 1, 1, 0, 1, held), NodeShare(1, 1, 1, 0, 1)])
    assert allocation.groups == (ShareGroup(0b01, 1, 1, 0, 1, held), ShareGroup(0b10, 1, 1, 0, 1))
    assert Allocation.unpack(allocation.pack()) == allocation


def test_core_numbers() -> None:
    assert read_cores("0-1,5") == 0b100011
    assert read_cores("") == read_cores("x") == 0


@pytest.mark.parametrize(
    ("text", "gres", "lack"),
    [
        # as 22.05.8 took them
        ("gpu:2", "Name=gpu File=/dev/tty1", "(1 < 2)"),
        ("gpu:2", "Name=gpu File=/dev/tty[1-2]", ""),
        ("gpu:1", "Name=gpu File=/dev/tty[1-2]", ""),
        ("gpu:2", "Name=gpu Type=x File=/dev/tty1\nName=gpu Type=y File=/dev/tty2", ""),
        ("gpu:a:2,gpu:b:1", "Name=gpu Type=a File=/dev/x\nName=gpu Type=b File=/dev/y", "(2 < 3)"),
        ("gpu:a:1,gpu:b:1", "Name=gpu Type=a File=/dev/tty[1-2]", "(1 < 2)"),
        ("gpu:y:2", "Name=gpu Type=x File=/dev/tty[1-2]", "(0 < 2)"),
        ("gpu:y:2", "Name=gpu File=/dev/tty[1-2]", "(0 < 2)"),
        ("tape:2", "Name=tape File=/dev/tty1", ""),
        # ours: nodes of sites that give slurm.conf alone, or say nothing of files, are whole
        ("gpu:2", "", ""),
        ("gpu:2", "Name=gpu Count=1", ""),
        ("gpu:2", "NodeName=n2 Name=gpu File=/dev/tty1", ""),
        ("gpu:2", "AutoDetect=nvml\nName=gpu File=/dev/tty1", ""),
        ("gpu:2", "AutoDetect=off\nName=gpu File=/dev/tty1", "(1 < 2)"),
    ],
)  # fmt: skip
def test_a_node_for_which_gres_conf_names_fewer_gpus_lacks_some(
    tmp_path: Path, text: str, gres: str, lack: str
) -> None:
    layouts = Layouts(read(tmp_path, f"GresTypes=gpu,tape\nNodeName=n[1-2] Gres={text}", gres))
    said = f"gres/gpu count reported lower than configured {lack}" if lack else ""
    assert layouts.lack("n1", text) == said
