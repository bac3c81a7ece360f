"""The decision about a pod: an ordered list of steps, from its claims to what is written and what counts as taken.

The scheduler, plans and the explanation of a pod run the steps of `deciding`; remedies ask for a part of them. None of them has a copy.
Pure: the time and the unique suffixes of claim names are passed in.
"""
