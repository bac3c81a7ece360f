"""Work that is handed to other clusters: which of them it goes to, what is copied there, and what its status says meanwhile.

Carried out by `controllers/multikueue`. The cluster that hands work over is the manager, those that run it are the workers.
"""
