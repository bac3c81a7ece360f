"""What a node offers of its containers: their logs, and commands inside them. The same for a simulated node and for a kubelet."""
