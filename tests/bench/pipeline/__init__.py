"""What the data pipeline manages on two cores, and whether its answers are right."""
