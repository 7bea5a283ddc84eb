"""Reservations: who may use them, when they begin and come again, their nodes."""
