"""The decision about a pod: an ordered list of steps, from its claims to what is written and what counts as taken.

Scheduler, plans, explanations and remedies all run the steps of `deciding`; none of them has a copy. Pure: the time and the unique suffixes
of claim names are passed in.
"""
