"""No gap between admission and placement: room for all pods of a workload is found, and kept, before it is admitted.

Quota counts amounts. Whether the pods of a workload find nodes and devices is decided by the search that places them, on a state of the
cluster in which everything that is admitted and not bound yet counts as taken. A control loop that admits has one `ClusterState` that
follows the cluster, and one `Rooms` on it (`rooms`):

1. When quota fits: `Rooms.admit`. `Unfit` means: not admitted now, for the reason it gives; to be tried again when the state changes.
   Otherwise it returns a text, which is to be written into the annotation `drayman.dev/room` of the Workload together with its admission,
   or before it. If that fails: `Rooms.forget`.
2. Every Workload that the server shows goes to `Rooms.follow` (`forget` when it is deleted), every pod to `Rooms.see` (`lose` when it is
   deleted): room that is kept follows from what is written down, also after a restart, and ends with the admission.
3. When nodes, slices, classes or taints change: `Rooms.fitter.review` for each reservation of `Rooms.book`, or for those `on` the nodes
   that changed. `Intact`: nothing to do. `Moved`: `Rooms.replace`, and the new text is written. `Unfit`: the workload is
   evicted with that reason and requeued.

Step 1 belongs between the decision of a cycle and its effect: a workload that has quota and no room is to be refused like one without quota
(`Waiting.refuse(entry, Again.ALONE)`, so that others of its queue are tried), before its quota is counted, and woken when the state of the
cluster calls its `wake`. Whom to drive out for room is tried with `clearing`, by the rules of `quota/preemption/for_room.py`.

The scheduler does step 2 on its own state (`admitted_room`), so that no other pod gets the room; explanations do the same on theirs. The
other modules: `expecting` makes the pods that a workload will have, `fitter` finds places for them, `reservation` is the result as data,
`book` counts it in a state.
"""
