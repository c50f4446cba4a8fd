"""A site in one process for the model test: controller and node program are real; nodes, systemd, disks, links, time are simulated.

One thing runs at a time, whoever has the turn (`turns`); all else follows from the sequence of acts (`acts`) and its seeds.
"""
