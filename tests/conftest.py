"""What all tests share."""

import os

from hypothesis import HealthCheck, settings

# How long an example takes, or is made, says more about the machine than about the code. Continuous
# integration draws the same examples each time, so that what it says of a change is about the
# change; everywhere else each run draws new ones.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("the same", settings.get_profile("untimed"), derandomize=True)
settings.load_profile("the same" if os.environ.get("CI") else "untimed")
