"""Options about GPUs that do not go together: as Slurm 22.05.8 answered them, one line of options
and one with its first error each, of some 2,000 that were drawn.

Covers: model/gpu_options, commands/submission/gres.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_controller import FakeClient, record, run_command

from understudy.commands.sbatch import sbatch

_LINES = Path(__file__).with_name("gpu_options.txt").read_text().splitlines()
RECORDED = list(zip(_LINES[::2], map(str.strip, _LINES[1::2]), strict=True))


@pytest.mark.parametrize(("options", "said"), RECORDED, ids=[options for options, _ in RECORDED])
def test_what_slurm_says(options: str, said: str) -> None:
    client = FakeClient(config=[record("config", name="GresTypes", value="gpu")])
    client.answers["SubmitJob"] = [7301, ""]
    outcome = run_command(sbatch, *options.split(), "--wrap", "true", client=client)
    errors = [line for line in outcome.err.splitlines() if line.startswith("sbatch: error: ")]
    assert errors[:1] == ([] if said == "taken" else [f"sbatch: error: {said}"])
    # fewer tasks than go to a GPU are told, and taken
    assert outcome.code == (said != "taken" and "Failed to add generated" not in said)
