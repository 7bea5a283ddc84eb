"""Real sites' configurations give the facts that an independent count states for each of them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from understudy.model import conf, hostlist
from understudy.model.conf import Finding, SlurmConfig
from understudy.model.conf_copy import copy_configuration
from understudy.model.errors import ConfigError

FOLDER = Path(__file__).resolve().parents[3].parent / "shared" / "slurm-confs"
INDEX = FOLDER / "index.json"
SITES: list[dict[str, Any]] = json.loads(INDEX.read_text())["files"] if INDEX.exists() else []
COMPANIONS = {"gres.conf", "topology.conf", "cgroup.conf"}

pytestmark = pytest.mark.skipif(
    not SITES,
    reason="the collection of sites' configurations is not beside this repository "
    "(../shared/slurm-confs)",
)


def in_slurm_conf(config: SlurmConfig, *kinds: str) -> list[Finding]:
    return [
        finding
        for finding in config.findings
        if finding.kind in kinds and Path(finding.file).name not in COMPANIONS
    ]


def facts(config: SlurmConfig) -> dict[str, Any]:
    """What the index states, from the configuration as read."""

    def lines_of(key: str) -> int:
        return sum(
            1 for line in config.lines if line.key == key and line.value.upper() != "DEFAULT"
        )

    at = {(line.file, line.line): line for line in config.lines}
    counts = [
        (finding, [int(number) for number in re.findall(r"\d+", finding.text)])
        for finding in in_slurm_conf(config, "address_count_mismatch")
    ]
    main_texts = [
        value for line in config.lines if line.file == config.path for _, value in line.pairs
    ]
    return {
        "cluster_name": config.cluster_name or None,
        "node_lines": lines_of("nodename"),
        "nodes": len(config.nodes),
        "duplicate_nodes": sorted(
            {
                name
                for each in in_slurm_conf(config, "duplicate_node")
                for name in hostlist.expand(each.text)
            }
        ),
        "partition_lines": lines_of("partitionname"),
        "partitions": [partition.name for partition in config.partitions],
        "nodes_per_partition": {
            partition.name: len(partition.nodes) for partition in config.partitions
        },
        "nodesets": list(config.node_sets),
        "down_nodes": [name for down in config.down_nodes for name in down.names],
        "total_cpus": sum(node.cpus for node in config.nodes),
        "total_real_memory_mb": sum(node.memory_mb for node in config.nodes),
        "gpu_types": sorted(
            {kind for text in main_texts for kind in re.findall(r"gpu:([A-Za-z_][^:,(]*)", text)}
        ),
        "parse_errors": [
            {
                "file": Path(each.file).name,
                "line": each.line,
                "text": each.text,
                "after": each.key or None,
            }
            for each in in_slurm_conf(config, "parse_error")
        ],
        "hostlist_errors": [str(each) for each in in_slurm_conf(config, "hostlist_error")],
        "undefined_nodes_in_partitions": {
            at[each.file, each.line].value: sorted(hostlist.expand(each.text))
            for each in in_slurm_conf(config, "undefined_nodes")
        },
        "address_count_mismatch": [
            {
                "file": Path(each.file).name,
                "line": each.line,
                "key": each.key,
                "names": numbers[0],
                "addresses": numbers[1],
            }
            for each, numbers in counts
        ],
        "key_given_twice_on_a_line": [
            {"file": Path(each.file).name, "line": each.line, "key": each.key}
            for each in in_slurm_conf(config, "key_given_twice")
        ],
        "repeated_global_keys": [
            {"key": each.key, "lines": [int(number) for number in each.text.split(",")]}
            for each in in_slurm_conf(config, "repeated_key")
        ],
        "keys_not_in_newest_manual": first_uses(config, "old_key"),
        "keys_in_no_manual_read": first_uses(config, "unknown_key"),
        "distinct_keys": len({key.lower() for line in config.lines for key in line.written}),
        "continued_lines": config.continued_lines,
    }


def first_uses(config: SlurmConfig, kind: str) -> list[dict[str, Any]]:
    first: dict[str, dict[str, Any]] = {}
    for each in in_slurm_conf(config, kind):
        first.setdefault(
            each.key.lower(), {"key": each.key, "file": Path(each.file).name, "line": each.line}
        )
    return list(first.values())


def comparable(name: str, value: Any) -> Any:
    if name == "undefined_nodes_in_partitions":
        # Long lists are cut in the index: "... 41 in all".
        return {
            partition: int(names[-1].split()[1])
            if names and names[-1].startswith("... ")
            else len(names)
            for partition, names in value.items()
        }
    if name in ("keys_not_in_newest_manual", "keys_in_no_manual_read"):
        return sorted((each["key"].lower(), each["line"], each["file"]) for each in value)
    return value


@pytest.mark.parametrize("site", SITES, ids=[site["dir"] for site in SITES])
def test_a_site_s_configuration_gives_the_stated_facts(site: dict[str, Any]) -> None:
    config = conf.read(FOLDER / site["dir"] / "slurm.conf")
    found = facts(config)
    stated = site["expect"]
    assert set(found) == set(stated)
    assert {name: comparable(name, value) for name, value in found.items()} == {
        name: comparable(name, value) for name, value in stated.items()
    }


@pytest.mark.parametrize("site", SITES, ids=[site["dir"] for site in SITES])
def test_a_site_s_includes_are_found_or_named(site: dict[str, Any]) -> None:
    config = conf.read(FOLDER / site["dir"] / "slurm.conf")
    missing = [(finding.line, finding.text) for finding in in_slurm_conf(config, "missing_include")]
    assert missing == [
        (include["line"], include["path"])
        for include in site["includes"]
        if not include["resolved"]
    ]
    read = [Path(name).name for name in config.files[1:] if Path(name).name not in COMPANIONS]
    assert read == [include["supplied_as"] for include in site["includes"] if include["resolved"]]


def tracks_without_a_database(folder: Path) -> bool:
    """Whether resources of its own are tracked, for which slurmctld needs slurmdbd."""
    text = "\n".join(path.read_text(errors="replace") for path in folder.glob("*.conf"))
    return (
        re.search(r"^AccountingStorageTRES=gres/", text, re.IGNORECASE | re.MULTILINE) is not None
        and re.search(r"^AccountingStorageType=", text, re.IGNORECASE | re.MULTILINE) is None
    )


@pytest.mark.parametrize("site", SITES, ids=[site["dir"] for site in SITES])
def test_a_site_s_configuration_loads_or_the_first_error_names_file_and_line(
    site: dict[str, Any],
) -> None:
    path = FOLDER / site["dir"] / "slurm.conf"
    stated = site["expect"]
    must_fail = any(
        stated[kind]
        for kind in (
            "parse_errors",
            "duplicate_nodes",
            "undefined_nodes_in_partitions",
            "address_count_mismatch",
        )
    )
    must_fail = (
        must_fail
        or bool(stated["keys_in_no_manual_read"])
        or not stated["cluster_name"]
        or not stated["nodes"]
        or not stated["partitions"]
        or tracks_without_a_database(path.parent)
    )
    if not must_fail:
        assert len(conf.load(path).nodes) == stated["nodes"]
        return
    with pytest.raises(ConfigError, match=r"\.conf( line \d+)?: ") as caught:
        conf.load(path)
    places = {
        each["line"] for kind in ("parse_errors", "address_count_mismatch") for each in stated[kind]
    }
    if caught.value.line and places:
        assert caught.value.line <= min(places)


@pytest.mark.parametrize("site", SITES, ids=[site["dir"] for site in SITES])
def test_the_copy_in_a_run_directory_has_all_that_the_site_s_files_have(
    site: dict[str, Any], tmp_path: Path
) -> None:
    path = FOLDER / site["dir"] / "slurm.conf"
    written = [
        line.pairs for line in conf.read(path).lines if Path(line.file).name not in COMPANIONS
    ]
    copied = conf.read(copy_configuration(path, tmp_path))
    assert [
        line.pairs for line in copied.lines if Path(line.file).name not in COMPANIONS
    ] == written
