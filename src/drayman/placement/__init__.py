"""Where pods can go: the cluster as it is, what a pod asks of it, and the nodes and devices that serve the pod, best first.

Pure. The scheduler decides with it, `explain` and `simulate` ask it questions: what they say is what the scheduler would do.
"""
