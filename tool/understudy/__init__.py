"""The sub-commands of `understudy`."""
