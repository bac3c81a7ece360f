"""What would make a pod fit: changes to what is requested, to what is used, and to what is forbidden.

Only what was tried is named: each change is made on the state of the world, a node is searched for with it, and it is undone.
"""

from drayman.explain.remedies.choosing import RemedyReport, remedies_for, remedies_for_job

__all__ = ["RemedyReport", "remedies_for", "remedies_for_job"]
