"""Keys by their age."""

from __future__ import annotations

from hypothesis import given, strategies as st

from router.control.edge.ages import KeysByAge

from support.examples import examples


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcdef"))))
@examples(200)
def test_the_oldest_comes_first(steps: list[tuple[bool, str]]) -> None:
    ages = KeysByAge()
    model: dict[str, float] = {}
    for now, (adds, key) in enumerate(steps):
        was_there = model.pop(key, None) is not None
        if adds:
            ages.add(key, now)
            model[key] = now
        else:
            assert ages.discard(key) == was_there
        assert len(ages) == len(model)
        assert [each in ages for each in "abcdef"] == [each in model for each in "abcdef"]
        assert ages.oldest() == next(iter(model.items()), None)
    for key, since in model.items():
        assert ages.oldest() == (key, since)
        ages.discard(key)
    assert ages.oldest() is None
