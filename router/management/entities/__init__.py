"""Entity types of the management node, with one module for each family of types."""
