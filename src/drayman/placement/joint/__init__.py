"""Places for several pods at once: a joint search over pods, nodes and devices.

Pods that belong together are not placed one after the other: what the first ones took would decide whether the last ones fit. `packing`
decides how many pods go to each node, `seating` finds out what a single node gives to several pods, and `arranging` puts the two
together. Pods whose places depend on each other across nodes are placed step by step instead (`stepwise`), and every step can be revised.
Everything happens in a trial of the cluster state and is undone in the end; the result is carried out by the caller.
"""
