"""The routing protocol: who is in the network, by which way they are reached, who wants what."""
