"""The pytest plug-in: the fixture `slurm_cluster`, a cluster for tests (docs/python.md).

Place: of the API; pytest loads it wherever understudy is installed (entry point `pytest11`), so it
imports nothing of the house until a test asks for the fixture, and its hooks do nothing before.

A cluster belongs to one process, has a run directory of its own and listens on Unix sockets alone,
so the workers of pytest-xdist have one each without knowing of each other. While a test runs that
uses it, and it alone, the commands are on PATH and SLURM_CONF names it. It ends with the process,
even one that is killed.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, cast

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from understudy.api.cluster import Cluster

_FIXTURE = "slurm_cluster"
_SURROUNDING = "_slurm_environment"
_SCOPES = ("function", "class", "module", "package", "session")
_LOG_LINES = 20
# options of commands, which a test sets itself if it wants them
_HIDDEN = ("SBATCH_", "SALLOC_", "SRUN_", "SLURM_", "SQUEUE_", "SINFO_", "SACCT_", "SCANCEL_")
_USED = pytest.StashKey["Cluster"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Its options, on the command line and in the ini file."""
    group = parser.getgroup("understudy", "understudy: a Slurm cluster for tests")
    for name, text in (
        ("conf", "slurm.conf of the cluster; else four nodes, quick"),
        ("nodes", "how many nodes, where no conf says it"),
        ("time", "real, scaled:N or virtual; else real"),
        ("executor", "real: scripts run; or emulated; else real"),
    ):
        group.addoption(f"--slurm-{name}", metavar=name.upper(), help=text)
        parser.addini(f"slurm_{name}", help=text, default="")
    parser.addini(
        "slurm_scope", help="how long a cluster lasts: " + ", ".join(_SCOPES), default="session"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Its marker; and a wrong scope, which pytest itself would end at with a traceback."""
    _checked(config.getini("slurm_scope"))
    config.addinivalue_line(
        "markers",
        "slurm_cluster(conf, nodes, time, executor, settings, scope): the cluster of these tests "
        "is another one",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test whose marker says something has a cluster of its own kind."""
    marker = metafunc.definition.get_closest_marker(_FIXTURE)
    if marker is None or _FIXTURE not in metafunc.fixturenames:
        return
    said = dict(marker.kwargs)
    known = {"conf", "nodes", "time", "executor", "settings", "scope"}
    if marker.args or not said.keys() <= known:
        wrong = [*map(repr, marker.args), *sorted(said.keys() - known)]
        raise pytest.UsageError(
            f"{metafunc.definition.nodeid}: slurm_cluster({', '.join(wrong)}): "
            f"it takes {', '.join(sorted(known))}, by name"
        )
    scope = _checked(said.pop("scope", None) or metafunc.config.getini("slurm_scope"))
    if "settings" in said and not isinstance(said["settings"], str):  # which the cluster refuses
        said["settings"] = tuple(said["settings"])
    hidden = getattr(pytest, "HIDDEN_PARAM", _FIXTURE)
    kinds = [tuple(sorted(said.items()))]
    metafunc.parametrize(_FIXTURE, kinds, indirect=True, scope=cast("Any", scope), ids=[hidden])


def _checked(scope: str) -> str:
    if scope not in _SCOPES:
        raise pytest.UsageError(f"slurm_scope {scope}: one of {', '.join(_SCOPES)}")
    return scope


def _scope(fixture_name: str, config: pytest.Config) -> Any:  # noqa: ARG001  as pytest calls it
    return config.getini("slurm_scope")


@pytest.fixture(scope=_scope)
def slurm_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A cluster, with its commands on the PATH: an `understudy.Cluster`."""
    from understudy.api.cluster import Cluster
    from understudy.api.errors import UnderstudyError

    kind = {**_asked(request.config), **dict(getattr(request, "param", ()))}
    try:
        cluster = Cluster(**kind).start()
    except UnderstudyError as error:
        pytest.fail(f"{_FIXTURE}: {error}", pytrace=False)
    yield cluster
    cluster.stop()


@pytest.fixture
def _slurm_environment(slurm_cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[None]:
    """What programs find around them while a test runs that uses a cluster."""
    request.node.stash[_USED] = slurm_cluster
    before = dict(os.environ)
    wanted = {
        name: value
        for name, value in slurm_cluster.environment.items()
        if name == "SLURM_CONF" or not name.startswith(_HIDDEN)
    }
    _change(before, wanted)
    yield
    # what the test itself has changed stays changed, as without the fixture
    _change(wanted, before)


def _change(old: dict[str, str], new: dict[str, str]) -> None:
    for name in old.keys() - new.keys():
        os.environ.pop(name, None)
    for name, value in new.items():
        if old.get(name) != value:
            os.environ[name] = value


def pytest_itemcollected(item: pytest.Item) -> None:
    """A test that uses a cluster, be it by another fixture, is surrounded by it before anything
    else is set up.
    """
    names: list[str] = getattr(item, "fixturenames", [])
    if _FIXTURE in names and _SURROUNDING not in names:
        names.insert(0, _SURROUNDING)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed shows the ends of the daemons' logs."""
    report = yield
    cluster = item.stash.get(_USED, None)
    if cluster is not None and report.failed:
        for daemon in cluster.logs():
            if text := cluster.log(daemon, _LOG_LINES):
                report.sections.append((f"{_FIXTURE}: {daemon}.log", text))
    return report


def _asked(config: pytest.Config) -> dict[str, Any]:
    """What the options and the ini file say of the cluster."""
    kind: dict[str, Any] = {"executor": "real"}
    for name in ("conf", "nodes", "time", "executor"):
        value = config.getoption(f"--slurm-{name}") or config.getini(f"slurm_{name}")
        if value:
            kind[name] = value
    if "conf" in kind:
        kind["conf"] = config.invocation_params.dir / kind["conf"]
    if "nodes" in kind:
        if not str(kind["nodes"]).isdigit():
            raise pytest.UsageError(f"slurm_nodes {kind['nodes']}: a number")
        kind["nodes"] = int(kind["nodes"])
    if kind.get("time", "real") != "real" and not (
        config.getoption("--slurm-executor") or config.getini("slurm_executor")
    ):
        kind["executor"] = "emulated"
    return kind
