"""What workloads entail: the pods, replica sets, revisions and claims that a Job, a set or a template asks for, and what its status says.

Pure functions of objects. Controllers carry out what is decided here, and a plan asks the same functions what they would do.
"""
