"""Hands work to other clusters: a queue with a check of `kueue.x-k8s.io/multikueue` runs its workloads there.

A workload that holds quota is offered to the workers where its pods have room (`workloads/dispatching/ranking.py`), with the claim
templates and device classes that they name. The first worker to admit it gets the job. What happens to the job there is brought back, and
whatever ends it on the manager ends it there.

**Fencing.** Nothing runs on two workers at once as far as anybody here can know. A job is created on a worker only while the status of its
Workload on the manager names that worker and no other; the status is written first, and only if nobody has changed the Workload since it
was read. The name is taken off when the worker has neither the job nor the copy of the Workload any more, or has not answered for longer
than `workerLostTimeout`; quota on the manager is given back after that, so nothing is offered anew before. A job is stopped before it is
deleted, and is gone when its pods are. A worker that does not answer cannot be told to stop: after the timeout, its job may run a second
time elsewhere, and the one that it still has is removed as soon as it answers again, before anything else is made of it.
"""
