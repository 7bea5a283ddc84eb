"""The link to the accounting daemon, and the records that go over it."""
