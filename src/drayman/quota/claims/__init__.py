"""Claims that pods name rather than get for themselves: what they cost all of their users, and who pays.

Several workloads may use one such claim. It is charged once. `prices` has what a claim costs and how its users divide that, `users` the
book of those that hold quota with it, `records` what is written down so that another process comes to the same book.
"""
