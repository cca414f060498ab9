"""The rows of the catalogue, a module for each kind of thing they tell of."""
