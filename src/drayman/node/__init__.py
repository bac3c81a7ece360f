"""Nodes: simulated ones (`simulated`), and the agent of a real one (`agent`) with its control groups (`cgroups`).

Importing this package imports neither, because a process has use for one of them.
"""
