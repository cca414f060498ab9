"""Accuracy of the job `causes` on faults planted in simulated networks."""
