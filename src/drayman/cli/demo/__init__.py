"""`drayman demo`: a cluster of simulated nodes, the pods of the examples, and their outcome."""
