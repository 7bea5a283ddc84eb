"""Options on generic resources that do not go together."""

from __future__ import annotations

from typing import Any

import pytest

from understudy.commands.submission.gres import complaint


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"gres": "gres:gpu:1"}, ""),
        (
            {"mem_per_tres": "gres:gpu:100"},
            "Requested mem_per_tres=gres:gpu:100 but did not request any GPU.",
        ),
        ({"mem_per_tres": "gres:gpu:100", "gres": "gres:tape,gres:gpu:a"}, ""),
        (
            {"tres_per_job": "gres:gpu:1", "cpus_per_tres": "gres:gpu:2", "cpus_per_task": 2},
            "--cpus-per-gpu is mutually exclusive with --cpus-per-task",
        ),
        (
            {"tres_per_socket": "gres:gpu:1"},
            "--gpus-per-socket option requires --sockets-per-node specification",
        ),
        (
            {"tres_per_task": "gres:gpu:1"},
            (
                "Failed to validate job spec. --gpus-per-task used without either --gpus or "
                "-n/--ntasks is not allowed."
            ),
        ),
        (
            {"tres_per_task": "gres:gpu:3", "tres_per_job": "gres:gpu:4"},
            "Failed to validate job spec, --gpus not multiple of --gpus-per-task",
        ),
        ({"tres_per_task": "gres:gpu:2", "tres_per_job": "gres:gpu:4"}, ""),
        ({"tres_per_task": "gres:gpu:1", "min_nodes": 2, "max_nodes": 2}, ""),
        (
            {"tres_per_job": "gres:gpu:2", "min_nodes": 3},
            "Failed to validate job spec, --gpus < -N",
        ),
        ({"tres_per_job": "gres:gpu:3", "min_nodes": 3}, ""),
        (
            {"ntasks_per_tres": 2},
            (
                "gres_job_state_validate: --ntasks-per-tres needs either a GRES GPU specification "
                "or a node/ntask specification"
            ),
        ),
        (
            {"ntasks_per_tres": 2, "num_tasks": 3},
            "Failed to validate job spec, -n/--ntasks has to be a multiple of --ntasks-per-gpu.",
        ),
        ({"ntasks_per_tres": 2, "num_tasks": 4}, ""),
        ({"ntasks_per_tres": 2, "num_tasks": 3, "tres_per_job": "gres:gpu:2"}, ""),
    ],
)
def test_what_is_said(spec: dict[str, Any], said: str) -> None:
    assert complaint(spec) == said


def test_gpus_for_each_socket_need_a_number_of_sockets() -> None:
    assert complaint({"tres_per_socket": "gres:gpu:1", "sockets_per_node": 2}) == ""
