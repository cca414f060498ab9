"""The entity types, a family of them in each module: what there is to be told of a router."""
