"""What a node offers of its containers, and how it is carried between a client, the API server and the node: their logs, commands inside
them, their ports, and what they use. The same for a simulated node and for a kubelet.
"""
