"""The GPU stand-in: one state a node, and everything that a node's programs and files say made from it.

Runs on the nodes as well as here: the standard library and `lab.errors` only.
"""
