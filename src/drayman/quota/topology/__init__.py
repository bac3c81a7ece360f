"""Where the pods of a workload go in a topology, as Kueue places them.

`FlavorTopology` has the nodes of a flavor, ordered by the levels of its topology, and places pod sets in them (`place`). Its parts:

- `wishes` reads what a pod set asks of a topology, and refuses what makes no sense;
- `capacity` has the nodes, `usage` what workloads hold in each domain, with exact undo;
- `counting` keeps how many pods and slices each domain holds, and recounts only what changed;
- `choosing` chooses domains (BestFit, LeastFreeCapacity), `balanced` spreads evenly, `descending` goes down to the lowest level;
- `replacing` finds another place for pods that lost their node;
- `assignments` writes and reads the compressed form of an assignment.
"""
