"""Recorded scenarios of queues and workloads, driven through the engine of quota step by step.

Nothing runs here: jobs start as soon as their workload has quota and stop as soon as it has to give it up, so that only decisions about
quota remain. A scenario has the form of Kueue's recorded ones: objects are created, patched and deleted, workloads end, and in between
everything comes to rest (`settle`), which is when the outcome is written down.
"""
