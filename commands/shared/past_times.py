"""Times that somebody looks back to: sacct's and sreport's --starttime and --endtime."""

import re


def midnight(now: float) -> int:
    import time

    moment = time.localtime(now)
    return int(time.mktime((moment.tm_year, moment.tm_mon, moment.tm_mday, 0, 0, 0, 0, 0, -1)))


def past_time(text: str, now: float) -> int:
    """A time that somebody looks back to: a time of day is today's, a date without a year this
    year's.

    Raises:
        ValueError: no time.
    """
    from understudy.model.moments import parse_time

    if text.lower().startswith(("now", "uts")):
        return parse_time(text, now)
    if re.match(r"\s*\d\d?/\d\d?(?![\d/])", text):
        import time

        return parse_time(text, time.mktime((time.localtime(now).tm_year, 1, 1, 0, 0, 0, 0, 0, -1)))
    return parse_time(text, midnight(now))
