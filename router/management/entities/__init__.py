"""Entity types of the management node, a family of them in each module."""
