"""A run directory has one slurm.conf with everything in it, and the companion files."""

import pytest

from understudy.model.conf_copy import copy_configuration, has_changed, inlined
from understudy.model.conf_scan import scan


@pytest.fixture
def site(tmp_path):
    (tmp_path / "site" / "parts").mkdir(parents=True)
    (tmp_path / "run").mkdir()
    return tmp_path / "site"


def test_included_files_stand_in_the_place_of_their_line(site):
    (site / "slurm.conf").write_text("ClusterName=a\ninclude parts/nodes\nTreeWidth=5\n")
    (site / "parts" / "nodes").write_text("NodeName=n[1-4]\nInclude parts/more")
    (site / "parts" / "more").write_text("NodeName=m1\n")
    lines = [line for line in inlined(site / "slurm.conf").splitlines() if not line.startswith("#")]
    assert lines == ["ClusterName=a", "NodeName=n[1-4]", "NodeName=m1", "TreeWidth=5"]


def test_the_name_of_an_include_may_hold_the_clusters_name(site):
    (site / "slurm.conf").write_text('ClusterName = "tux"\nInclude parts/%c.nodes\n')
    (site / "parts" / "tux.nodes").write_text("NodeName=n1\n")
    assert "NodeName=n1\n" in inlined(site / "slurm.conf")


def test_files_that_were_taken_elsewhere_together_are_found_beside_each_other(site):
    (site / "slurm.conf").write_text("Include /nowhere/at/all/nodes.conf\n")
    (site / "nodes.conf").write_text('include "/nowhere/at/all/more.conf"\n')
    (site / "more.conf").write_text("NodeName=n1\n")
    assert "NodeName=n1\n" in inlined(site / "slurm.conf")


@pytest.mark.parametrize(
    "name", ["parts/nodes", "parts/%c.nodes", "/nowhere/nodes", '"parts/nodes"']
)
@pytest.mark.parametrize("inner", ["parts/more", "more", "/nowhere/more"])
def test_what_the_reader_reads_is_what_is_copied(site, name, inner):
    (site / "slurm.conf").write_text(f"ClusterName=tux\nInclude {name}\n")
    for path in ("parts/nodes", "parts/tux.nodes", "nodes"):
        (site / path).write_text(f"Include {inner}\n")
    for path in ("parts/more", "more"):
        (site / path).write_text(f"NodeName={path.replace('/', '')}\n")
    read = scan(str(site / "slurm.conf"))
    assert not read.findings
    (site.parent / "copy.conf").write_text(inlined(site / "slurm.conf"))
    copied = scan(str(site.parent / "copy.conf"))
    assert [line.pairs for line in copied.lines] == [line.pairs for line in read.lines]
    assert "nodename" in str(read.lines[-1].pairs)


def test_an_include_that_is_missing_becomes_a_comment(site):
    (site / "slurm.conf").write_text("Include nowhere\nTreeWidth=5\n")
    assert inlined(site / "slurm.conf") == "# Include nowhere (not found)\nTreeWidth=5\n"


def test_a_file_that_includes_itself_is_refused(site):
    (site / "slurm.conf").write_text("Include slurm.conf\n")
    with pytest.raises(ValueError, match="include each other"):
        inlined(site / "slurm.conf")


def test_bytes_that_are_not_utf8_stay_what_they_were(site):
    (site / "slurm.conf").write_bytes(b"# M\xfcller\n")
    assert (
        copy_configuration(site / "slurm.conf", site.parent / "run").read_bytes()
        == b"# M\xfcller\n"
    )


def test_companions_come_along_and_those_of_an_earlier_configuration_go(site):
    run_dir = site.parent / "run"
    (run_dir / "topology.conf").write_text("SwitchName=old\n")
    (site / "slurm.conf").write_text("GresTypes=gpu\n")
    (site / "gres.conf").write_text("NodeName=n1 Name=gpu Count=2\n")
    copy_configuration(site / "slurm.conf", run_dir)
    assert sorted(path.name for path in run_dir.iterdir()) == [
        "conf.read",
        "gres.conf",
        "slurm.conf",
    ]


def test_a_run_directorys_own_configuration_stays_as_it_is(site):
    run_dir = site.parent / "run"
    (run_dir / "slurm.conf").write_text("TreeWidth=5\n")
    (run_dir / "gres.conf").write_text("Name=gpu Count=2\n")
    assert copy_configuration(run_dir / "slurm.conf", run_dir).read_text() == "TreeWidth=5\n"
    assert (run_dir / "gres.conf").exists()


def test_a_configuration_has_changed_when_one_of_its_files_was_written_came_or_went(site):
    run_dir, conf = site.parent / "run", site / "slurm.conf"
    conf.write_text("include more.conf\n")
    (site / "more.conf").write_text("TreeWidth=5\n")
    assert has_changed(conf, run_dir), "it was never copied"
    copy_configuration(conf, run_dir)
    assert not has_changed(conf, run_dir)
    (run_dir / "slurm.conf").write_text("TreeWidth=7\n")
    assert not has_changed(conf, run_dir), (
        "what somebody writes into the copy holds as long as the site's file is what it was"
    )
    (site / "more.conf").write_text("TreeWidth=50\n")
    assert has_changed(conf, run_dir)
    copy_configuration(conf, run_dir)
    (site / "gres.conf").write_text("Name=gpu Count=2\n")
    assert has_changed(conf, run_dir)
    copy_configuration(conf, run_dir)
    (site / "gres.conf").unlink()
    assert has_changed(conf, run_dir)
    assert not has_changed(run_dir / "slurm.conf", run_dir)


def test_a_script_is_copied_as_it_is_and_noticed_when_it_changes(site):
    run, script = site.parent / "run", site / "burst_buffer.lua"
    (site / "slurm.conf").write_text("ClusterName=a\n")
    script.write_text("-- a\ninclude parts\n#t")
    copy_configuration(site / "slurm.conf", run)
    assert (run / "burst_buffer.lua").read_text() == script.read_text()
    assert not has_changed(site / "slurm.conf", run)
    script.write_text("-- another")
    assert has_changed(site / "slurm.conf", run)
    script.unlink()
    copy_configuration(site / "slurm.conf", run)
    assert not (run / "burst_buffer.lua").exists()
