"""The queues of a cluster: how much quota each has, who uses it, who lends it to whom, and who waits."""
