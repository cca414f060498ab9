"""Both ends of the connections between edge routers and interiors, which are called uplinks."""
