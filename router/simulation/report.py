"""Convert the result of a simulation to plain data, and sum up its phases by action."""

from __future__ import annotations

from router.simulation.phases import Phase
from router.simulation.running import Result

# Most broken rules that are listed.
MOST_MISTAKES = 100
_DIGITS = 6
_SUMS = (
    "control_messages",
    "control_octets",
    "sent",
    "accepted",
    "released",
    "modified",
    "rejected",
    "lost",
    "delivered",
    "doubled",
)


def as_data(result: Result) -> dict[str, object]:
    """Return the whole result as data for JSON.

    Times are in seconds from the beginning of traffic. Two simulations of the same file with the
    same seed have equal results.
    """
    began = result.began
    return {
        "seed": result.topology.simulation.seed,
        "routers": len(result.plan.routers),
        "links": len(result.plan.links),
        "steps": result.steps,
        "converged": result.is_converged,
        "phases": [_phase(each, began) for each in result.phases],
        "messages": {
            "sent": result.sent,
            **{word: result.outcomes[word] for word in sorted(result.outcomes)},
        },
        "mistakes": len(result.mistakes),
        "first_mistakes": list(result.mistakes[:MOST_MISTAKES]),
    }


def _phase(phase: Phase, began: float) -> dict[str, object]:
    data: dict[str, object] = {
        "what": phase.what,
        "action": phase.action,
        "began_s": _rounded(phase.began - began),
        "ended_s": _rounded(phase.ended - began),
        "converged_s": None if phase.converged_s is None else _rounded(phase.converged_s),
    }
    data |= {name: getattr(phase, name) for name in _SUMS}
    data["longest_wait_s"] = _rounded(phase.longest_wait_s)
    data["mean_latency_s"] = _rounded(mean(phase.latency_s, phase.delivered))
    data["longest_latency_s"] = _rounded(phase.longest_latency_s)
    data["mean_stretch"] = _rounded(mean(phase.stretch, phase.stretched))
    data["longest_stretch"] = _rounded(phase.longest_stretch)
    return data


def mean(total: float, count: int) -> float:
    """Return the mean of `count` values whose sum is `total`, or 0 if there are none."""
    return total / count if count else 0.0


def _rounded(value: float) -> float:
    return round(value, _DIGITS)


def by_action(phases: tuple[Phase, ...]) -> list[Phase]:
    """Return a summary of all phases of each action, in order of the first phase.

    A summary has the maximum of `converged_s` and of the fields named `longest_...`, and the sums
    of all other values.
    """
    found: dict[str, list[Phase]] = {}
    for phase in phases:
        found.setdefault(phase.action, []).append(phase)
    return [_summed(action, each) for action, each in found.items()]


def _summed(action: str, phases: list[Phase]) -> Phase:
    what = phases[0].what if len(phases) == 1 else f"{action}, {len(phases)} times"
    times = [phase.converged_s for phase in phases]
    total = Phase(action, what, phases[0].began, phases[-1].ended)
    total.converged_s = None if None in times else max(time for time in times if time is not None)
    for name in (*_SUMS, "latency_s", "stretch", "stretched"):
        setattr(total, name, sum(getattr(phase, name) for phase in phases))
    for name in ("longest_wait_s", "longest_latency_s", "longest_stretch"):
        setattr(total, name, max(getattr(phase, name) for phase in phases))
    return total
