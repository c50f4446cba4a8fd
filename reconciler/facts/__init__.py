"""One file a fact: the probe that asks for it and the pure parser that understands the answer.

A parser answers a value, Absent or Unknown(why) on any bytes and never raises.
"""
