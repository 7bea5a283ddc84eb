"""Understudy in Python: what `import understudy` offers, and nothing else is promised to stay.

Place: above all rooms, the tool included; nothing imports it but the package `understudy`, which
names what is public here, and pytest, which loads `pytest_plugin`. Whatever a function needs is
imported when it is called.
"""
