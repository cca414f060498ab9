"""What each rare operation costs, and the longest turn that it takes: ``make costs``."""
