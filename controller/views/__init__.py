"""Rows that commands show, one getter a column."""
