"""Queues in the sense of the KAI Scheduler, as facts about a cluster: which queue pods are in, what each queue holds, and its limits.

Who is entitled to what beyond that is decided by `quota.shares`.
"""
