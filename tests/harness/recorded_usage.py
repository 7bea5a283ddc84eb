"""What ran on a real cluster in its first hour, and when its nodes were down: slurmdbd 22.05.8
added it up for tests to compare.
"""

HOUR = 1_795_280_400
REGISTERED = HOUR + 198
CLUSTER = {"start_time": REGISTERED, "end_time": None, "tres": {"cpu": 16, "mem": 16000}}


def job(eligible, start, end, cpus=1, *, asked=1, association=2, memory=100, **fields):
    known = {
        "eligible_time": eligible,
        "start_time": start,
        "end_time": end,
        "suspended_s": 0,
        "association_id": association,
        "user": "root",
    }
    known |= {
        "wckey": "",
        "reservation_id": 0,
        "tres_requested": {"cpu": asked},
        "tres_allocated": {"cpu": cpus, "mem": memory},
    }
    return {
        name: None if value is None else value + HOUR if name.endswith("_time") else value
        for name, value in {**known, **fields}.items()
    }


# Jobs of a real cluster: eligible, start, end (after the hour), CPUs held; CPUs asked for.
JOBS = [
    job(225, 225, 230, 16, asked=4, memory=16000),
    job(225, 231, 239, 3, asked=3, memory=1000),
    job(225, 231, 318, memory=4000),
    job(225, 231, 251, 2, asked=2, association=7, memory=200),
    job(225, 231, 251, 2, asked=2, association=8, memory=200),
    job(225, 231, 291),
    job(225, 231, 251),
    job(225, 231, 234),
    job(225, 231, 234),
    job(235, 235, 238),
    job(235, 235, 238),
    job(239, 239, 242),
    job(225, None, 229),
    *[job(323, 323, 329) for _ in range(2)],
    job(323, 323, 332, suspended_s=3),
    *[job(323, 323, 332) for _ in range(2)],
    job(323, 323, 329, association=7, memory=10),
    job(323, 323, 324, association=7, memory=10),
    job(450, 465, 505),
    *[job(453, 465, 505) for _ in range(2)],
    job(1019, 1019, 1022, 16, asked=4, memory=16000),
    *[job(1019, None, 1022, asked=4) for _ in range(3)],
    job(1273, 1274, 1304, 16, asked=4, memory=16000),
    job(1275, 1304, 1306, 3, asked=3, memory=4000),
    job(1275, 1304, 1305, memory=4000),
    job(1275, 1304, 1306, memory=4000),
]
DOWN = [
    {"start_time": HOUR + 332, "end_time": HOUR + 335, "tres": {"cpu": 4, "mem": 4000}},
    {"start_time": HOUR + 333, "end_time": HOUR + 335, "tres": {"cpu": 4, "mem": 4000}},
]
