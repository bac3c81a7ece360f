"""The problem: what is asked of a node's devices, as sets and numbers, and the form in which it is answered."""
