"""Work that waits for quota as Kueue has it: which pods an object comes to, and how it is held, started, stopped and restored.

Everything here is a function of objects. Following a cluster, deciding about quota and writing are the business of `controllers/quota`.
"""
