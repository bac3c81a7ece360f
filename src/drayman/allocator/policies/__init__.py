"""Which allocation is taken: the first in upstream's order, or the best."""
