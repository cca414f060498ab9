"""How often the job `causes` names what was planted in simulated networks."""
