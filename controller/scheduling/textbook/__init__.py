"""Textbook policies for research."""
