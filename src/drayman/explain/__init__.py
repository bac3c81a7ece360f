"""Why a pod waits, what would help, and why one that runs is where it is.

Every sentence is derived from what the placement itself recorded, and every remedy has been tried by a search before it is named.
Pure, like all it builds on: objects in, an `Explanation` out.
"""
