"""Hierarchical queues in the sense of the KAI Scheduler: shares of one resource, and who starts, gives way or waits because of them.

A queue has a quota, a limit and a weight for what is left over. Work is stated as pod groups in the leaves of a tree of queues. One cycle
(`cycle`) starts what fits, and makes room where a group is entitled to it; where pods go is decided by the joint search of `placement`.
"""
