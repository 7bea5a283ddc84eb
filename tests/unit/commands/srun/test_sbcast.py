"""sbcast: what it says of its own command line."""

from fake_controller import FakeClient, run_command

from understudy.commands.srun.sbcast import sbcast


def test_the_summary_of_options_is_a_line():
    said = run_command(sbcast, "--usage", client=FakeClient())
    assert said.code == 0
    assert said.out == "Usage: sbcast [--exclude] [-CfFjpvV] [--send-libs] SOURCE DEST\n"
