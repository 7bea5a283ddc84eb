"""`understudy`: clusters up and down, replays, the clock; the only room that knows all daemons."""
