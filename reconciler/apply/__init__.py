"""Carrying out a plan: journal, lease, steps. What is decided comes in as values and functions; nothing is decided here."""
