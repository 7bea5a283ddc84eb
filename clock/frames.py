"""The frames between a participant and the clock service: msgpack lists, sealed like all others.
The hot path of virtual time, hence no messages.

    participant -> service                          service -> participant
    [JOIN, watches]                                 [GRANT, end_us, {sender: messages in all},
    [REPORT, next_us, now_us, waiting,                  needed_us]
        {receiver: [messages, earliest delivery     [HELD, now_us]
        us]}, needs_us]                             [STALLED, reason]
    [HOLD]   [LEAVE]   [PAUSE, reason]              [RATE, virtual us, monotonic s, rate,
                                                        host's clock]
    [CONTROL, number, message]                      [ANSWER, number, message]
                                                    [LOST, reason]

STALLED and LOST go to those who watch. STALLED: nobody has anything left to do. LOST: a participant
died or hangs, and time will not go on. RATE is for scaled time: from the given instant of the
host's monotonic clock on, the cluster's time runs at `rate`; the instant is that of sending, as
another host has another clock (host_clock.py). CONTROL is what `understudy clock` sends, with a
ClockControl message inside.
"""

from typing import Final

JOIN: Final = 0
REPORT: Final = 1
HOLD: Final = 2
LEAVE: Final = 3
PAUSE: Final = 4
CONTROL: Final = 5

GRANT: Final = 10
HELD: Final = 11
STALLED: Final = 12
RATE: Final = 13
ANSWER: Final = 14
LOST: Final = 15
