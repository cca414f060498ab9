"""A request is sent again once its answer is late, unless the answer probably waits already."""

from __future__ import annotations

from router.control.network.links import RouterLink, RouterLinks
from router.control.network.pending_requests import LONGEST_ANSWER_S, PendingRequest
from router.control.network.timing import Timing

TIMING = Timing()


def asked(*, is_behind: bool) -> tuple[PendingRequest, RouterLinks]:
    """Return a request that was sent on a connection, from which messages wait or not."""
    links = RouterLinks("a", 1, TIMING)
    links.add(RouterLink(7, "b", 1, 1, 1, 0.0))
    links.is_behind = lambda _: is_behind
    request = PendingRequest(5, None, TIMING.retry_s)
    request.asked.add(7)
    request.patient_until = LONGEST_ANSWER_S
    return request, links


def test_it_is_sent_again_after_a_while() -> None:
    request, links = asked(is_behind=False)
    assert not request.is_due(TIMING.retry_s / 2, links)
    assert request.is_due(TIMING.retry_s, links)


def test_while_messages_wait_it_is_not_sent_again() -> None:
    request, links = asked(is_behind=True)
    assert not request.is_due(TIMING.retry_s, links)
    assert request.due == 2 * TIMING.retry_s
    # another neighbour does not matter
    request.asked = {8}
    assert request.is_due(2 * TIMING.retry_s, links)


def test_nobody_keeps_it_waiting_for_ever() -> None:
    request, links = asked(is_behind=True)
    assert not request.is_due(LONGEST_ANSWER_S - 0.1, links)
    assert request.due == LONGEST_ANSWER_S
    assert request.is_due(LONGEST_ANSWER_S, links)
