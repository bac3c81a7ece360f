"""No gap between admission and placement: room for all pods of a workload is found, and kept, before it is admitted.

Quota counts amounts. Whether the pods of a workload find nodes and devices is decided by the search that places them, on a state of the
cluster in which everything that is admitted and not bound yet counts as taken. How a control loop uses it, with one `ClusterState` that
follows the cluster, one `RoomBook` and one `Fitter`:

1. When quota fits: `expected_pods` makes the pods that the workload will have, from its pod sets as they will be started, with the
   domains of its topology assignment. `Fitter.fit` finds room for them. `Unfit` means: not admitted now, for the reason it gives; it is to
   be tried again when the state changes. Otherwise `RoomBook.keep`, and the workload is admitted. `record_of` is what to write down
   with the admission, so that after a restart `restored` and `RoomBook.keep` put it back in place.
2. When pods appear: `RoomBook.hand_over` chooses a place for each. The loop says so in a condition of the pod (`KeptRoom`, renewed while it
   waits), and the scheduler keeps it as room that it has promised itself. Until then the room counts in the book only.
3. When a pod is bound: `RoomBook.fulfil`. When a pod is deleted and will be replaced: `RoomBook.vacate`.
4. When the workload ends or is evicted: `RoomBook.release`. The state is then as if nothing had been kept.
5. When nodes, slices, classes or taints change: `Fitter.review` for each reservation. `Intact`: nothing to do. `Moved`: `RoomBook.replace`,
   and the conditions of pods that wait are written again. `Unfit`: the workload is evicted with that reason and requeued.
"""
