"""Times that somebody looks back to: sacct's and sreport's --starttime and --endtime."""


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
    return parse_time(text, midnight(now))
