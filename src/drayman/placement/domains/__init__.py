"""The places of a cluster that hold several nodes, what each of them holds, and which of them to choose."""
