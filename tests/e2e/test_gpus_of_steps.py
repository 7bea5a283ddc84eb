"""GPUs of steps: which a step gets, and what its tasks are told. What is expected is what tasks of
real Slurm 22.05.8 printed.
"""

import pytest
from real_cluster import RealCluster

SHOW = 'env | grep -E "^[A-Z_]*(CUDA|GPU|ROCR|TRES_BIND)" | sort'


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    folder = tmp_path_factory.mktemp("c")
    cluster = RealCluster(folder)
    (folder / "gres.conf").write_text("NodeName=n[1-4] Name=gpu File=/dev/nvidia[0-3]\n")
    cluster.up()
    yield cluster
    cluster.down()


def shown(devices: str, count: int, *more: str) -> str:
    lines = [
        f"CUDA_VISIBLE_DEVICES={devices}",
        f"GPU_DEVICE_ORDINAL={devices}",
        f"ROCR_VISIBLE_DEVICES={devices}",
    ]
    return (
        "\n".join(
            sorted([*lines, f"SLURM_GPUS_ON_NODE={count}", f"SLURM_STEP_GPUS={devices}", *more])
        )
        + "\n"
    )


def test_what_was_asked_for_is_shown(cluster):
    show = "scontrol show step $SLURM_JOB_ID.0 | grep -o 'Tres.*'"
    assert (
        cluster.run("srun", "--gpus=1", "--gpu-bind=single:1", "bash", "-c", show).stdout
        == "TresBind=gpu:single:1\nTresPerStep=cpu:1,gres:gpu:1\n"
    )
    assert (
        cluster.run("salloc", "-Q", "-N1", "--gres=gpu:2", "srun", "bash", "-c", show).stdout
        == "TresPerNode=gres:gpu:2\n"
    )


def test_of_srun_alone(cluster):
    assert cluster.run("srun", "--gres=gpu:2", "bash", "-c", SHOW).stdout == shown("0,1", 2)


def test_each_task_has_its_own_where_that_was_asked_for(cluster):
    out = cluster.run("srun", "-N1", "-n2", "--gpus-per-task=1", "-l", "bash", "-c", SHOW).stdout
    for task in range(2):
        lines = [
            line.removeprefix(f"{task}: ")
            for line in out.splitlines()
            if line.startswith(f"{task}: ") and "SLURM_GPUS_PER_TASK" not in line
        ]
        assert "\n".join(lines) + "\n" == shown(str(task), 2, "SLURMD_TRES_BIND=gpu:per_task:1")


def test_steps_of_a_script_share_its_gpus(cluster):
    job = cluster.script(
        f"""
        show() {{ {SHOW} | grep -v SLURM_JOB_GPUS; }}; export -f show
        echo batch; bash -c '{SHOW}'
        echo plain; srun -n1 bash -c show
        echo one; srun -n1 --gres=gpu:1 bash -c show
        echo beside
        srun -n1 --exact --gres=gpu:1 bash -c \
            'touch first; while [ ! -e second ]; do sleep 0.02; done' &
        while [ ! -e first ]; do sleep 0.02; done
        srun -n1 --exact --gres=gpu:2 bash -c show; touch second; wait
        echo none; srun -n1 --gres=none bash -c 'show; true'
        echo bound; srun -n2 -l --gpu-bind=map_gpu:2,0 bash -c 'echo $CUDA_VISIBLE_DEVICES' | sort
        """,
        "--gres=gpu:3", "-n2", "-N1", "--output=gpus.out",
    )  # fmt: skip
    assert cluster.ended(job) == "COMPLETED"
    text = cluster.text("gpus.out")
    batch = shown("0,1,2", 3).replace("SLURM_STEP_GPUS", "SLURM_JOB_GPUS")
    expected = [
        "batch\n" + "".join(sorted(batch.splitlines(True))),
        "plain\n" + shown("0,1,2", 3),
        "one\n" + shown("0", 1),
    ]
    expected += ["beside\n" + shown("1,2", 2), "none\n", "bound\n0: 2\n1: 0\n"]
    assert text == "".join(expected)


def test_one_without_a_word_has_all_of_them_and_waits_for_others(cluster):
    job = cluster.script(
        """
        srun -n1 --exact --gres=gpu:1 bash -c 'touch held; sleep 1; date +%s%N' > one.out &
        while [ ! -e held ]; do sleep 0.02; done
        srun -n1 --exact bash -c 'date +%s%N; echo $CUDA_VISIBLE_DEVICES' > all.out
        wait
        """,
        "--gres=gpu:3", "-n2", "-N1", "--output=wait.out",
    )  # fmt: skip
    assert cluster.ended(job) == "COMPLETED"
    began, devices = cluster.text("all.out").split()
    assert int(began) > int(cluster.text("one.out"))
    assert devices == "0,1,2"
    assert (
        "step creation temporarily disabled, retrying (Requested nodes are busy)"
        in cluster.text("wait.out")
    )


@pytest.mark.parametrize(
    ("asked", "lines"),
    [
        (
            "--gres=gpu:9",
            [
                "Step requested gres_per_node=gpu:9 is more than the job's gres_per_node=gpu:3",
                "Unable to create step for job J: Invalid generic resource (gres) specification",
            ],
        ),
        ("--gpus=5", [("Unable to create step for job J: Invalid generic resource (gres) "
                       "specification")]),
        ("--gpus-per-task=2", [("Unable to create step for job J: Insufficient GRES available in "
                                "allocation")]),
    ],
)  # fmt: skip
def test_more_than_the_job_has_is_refused(cluster, asked, lines):
    job = cluster.script(
        f"srun -n2 {asked} true\n", "--gres=gpu:3", "-n2", "-N1", "--output=refused.out"
    )
    cluster.ended(job)
    assert cluster.text("refused.out").splitlines() == [
        f"srun: error: {line}".replace("job J", f"job {job}") for line in lines
    ]


def test_one_that_is_bound_to_a_gpu_of_somebody_else_is_told(cluster):
    other = cluster.script("sleep 60\n", "-w", "n4", "--gres=gpu:1", "--output=/dev/null")
    cluster.until(lambda: cluster.state(other) == "RUNNING")
    result = cluster.run(
        "srun",
        "-w",
        "n4",
        "-N1",
        "-n2",
        "-l",
        "--gres=gpu:2",
        "--gpu-bind=map_gpu:0,2",
        "bash",
        "-c",
        "echo $CUDA_VISIBLE_DEVICES",
    )
    assert sorted(result.stdout.splitlines()) == ["0: 1", "1: 2"]
    assert (
        "slurmstepd-n4: error: Bind request gpu:map_gpu:0,2 does not specify any devices "
        "within the allocation for task 0." in result.stderr
    )
    cluster.run("scancel", other)


@pytest.mark.parametrize(
    ("command", "before"),
    [
        (("sbatch", "--wrap=true"), "sbatch: error: Batch job submission failed: "),
        (("srun", "true"), "srun: error: Unable to allocate resources: "),
        (("salloc", "true"), "salloc: error: Job submit/allocate failed: "),
    ],
)
def test_a_count_that_is_no_number_is_refused(cluster, command, before):
    program, operand = command
    result = cluster.run(program, "--gres=gpu:1x", operand)
    assert (result.returncode, result.stderr) == (
        1,
        f"{before}Invalid Trackable RESource (TRES) specification\n",
    )
    result = cluster.run(program, "--gpus=a:1x", operand)
    assert (result.returncode, result.stderr) == (
        1,
        f"{program}: error: Invalid generic resource (gres) specification\n",
    )


@pytest.mark.parametrize(
    ("options", "tasks"),
    [
        ("--gpus=2", 4),
        ("--gpus=2 -n2", 4),
        ("--gpus=2 -n5 -N1", 5),
        ("--gres=gpu:2 -n3", 4),
        ("--gpus-per-node=2 -N2 -n2", 4),
        ("-n4", 4),
    ],
)
def test_a_step_has_tasks_for_each_gpu_or_more(cluster, options, tasks):
    result = cluster.run(
        "srun",
        "--ntasks-per-gpu=2",
        "--overcommit",
        *options.split(),
        "sh",
        "-c",
        "echo $SLURM_NTASKS",
    )
    assert result.stdout == f"{tasks}\n" * tasks


def test_tasks_that_are_no_multiple_of_those_for_each_gpu_are_refused(cluster):
    result = cluster.run("srun", "--ntasks-per-gpu=2", "-n3", "true")
    assert (result.returncode, result.stderr.splitlines()) == (
        1,
        [
            (
                "srun: error: Failed to validate job spec, -n/--ntasks has to be a multiple of "
                "--ntasks-per-gpu."
            ),
            "srun: error: Invalid generic resource (gres) specification",
        ],
    )
