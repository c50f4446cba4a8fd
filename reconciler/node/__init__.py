"""The program that runs on a node: standard library only, Python 3.6 and newer, sent over the channel and never installed.

Requests come in as JSON lines and leave as JSON lines. It writes nothing but its records below /var/lib/reconcile,
private caches below /run/reconcile, and what a step asks for while the step's lease is valid.
"""
