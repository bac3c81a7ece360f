"""Room that will be there for units that wait: when, where, and what others may do meanwhile."""
