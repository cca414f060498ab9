"""Work that is done bit by bit."""

from __future__ import annotations

from router.control.network.steps import Steps, do_all, do_some


def work(done: list[int]) -> Steps[str]:
    """Five times three."""
    for number in range(5):
        done.append(number)
        yield 3
    return "done"


def test_all_of_it() -> None:
    done: list[int] = []
    assert do_all(work(done)) == "done"
    assert done == [0, 1, 2, 3, 4]


def test_some_of_it() -> None:
    done: list[int] = []
    steps = work(done)
    assert do_some(steps, 4) == 0
    assert done == [0, 1]
    assert do_some(steps, 9) == 0
    assert do_some(steps, 5) == 5
    assert done == [0, 1, 2, 3, 4]
