"""Queues as Kueue has them: what waits in them, who is admitted, started, stopped and let go again.

`workloads/queued` says what an object comes to and how it is started and restored, `quota` who gets what. Here both are carried out. All
state is in objects: a process that begins anew reads them and goes on where the one before it ended.
"""
