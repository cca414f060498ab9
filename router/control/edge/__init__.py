"""Edge routers and their uplinks: both ends of such a connection."""
