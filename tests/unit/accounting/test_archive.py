"""Archives: what is due by slurmdbd.conf."""

import time

from understudy.accounting.archive import due
from understudy.model.dbd_conf import DbdConfig

NOW = time.mktime((2023, 3, 15, 10, 20, 30, 0, 0, -1))


def test_slurmdbd_conf_says_what_is_forgotten_and_what_is_written_to_files_before():
    dbd = DbdConfig(
        values={
            "PurgeJobAfter": "10days",
            "PurgeStepAfter": "0",
            "PurgeTXNAfter": "2",
            "PurgeEventAfter": "0hours",
            "ArchiveJobs": "yes",
        }
    )
    purges, archived, folder = due(dbd, NOW)
    assert {
        kind: (purge.unit, time.strftime("%F", time.localtime(purge.before)))
        for kind, purge in purges.items()
    } == {
        "Job": ("d", "2023-03-05"),
        "TXN": ("m", "2023-01-01"),
    }
    assert (archived, folder) == (["Job"], "/tmp")
    dbd.values |= {"ArchiveTXN": "yes", "ArchiveDir": "/archive"}
    assert due(dbd, NOW)[1:] == (["Job", "TXN"], "/archive")
    assert due(DbdConfig(), NOW)[0] == {}
