"""What would make a pod fit: changes of what is asked, of what is used, and of what is forbidden.

Nothing is named that was not tried: each change is made on the state of the world, a node is searched for with it, and it is undone.
"""

from drayman.explain.remedies.choosing import RemedyReport, remedies_for, remedies_for_job

__all__ = ["RemedyReport", "remedies_for", "remedies_for_job"]
