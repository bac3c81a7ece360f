"""Questions to a cluster, answered as data: what waits and why, the result of a plan, what is left, what holds which device.

Every user interface asks here: the command line, a page, a notebook. A question goes to any cluster, through a `cluster.Client`, or to one
that was saved in a file; the answer is a value that can be drawn, printed as JSON or looked into. Nothing here draws or prints, and what
cannot be answered is a `QuestionError`. `asking` is the way in for people who write Python.
"""
