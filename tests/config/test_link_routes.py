"""Link routes as a file has them."""

from __future__ import annotations

from router.config.link_routes import LinkRouteSettings
from router.config.load import parse_configuration


def test_a_link_route_needs_to_say_little() -> None:
    text = '[[linkRoute]]\nprefix = "a"\ndirection = "in"\ncontainerId = "c"\n'
    (route,) = parse_configuration(text, source="f").link_routes
    assert route == LinkRouteSettings(prefix="a", direction="in", container_id="c")
    assert (route.name, route.distribution) == ("linkRoute/in/a/c", "linkBalanced")
    assert (route.add_external_prefix, route.del_external_prefix) == (None, None)


def test_a_link_route_may_say_all() -> None:
    text = """
        [[linkRoute]]
        pattern = "a/*/#"
        direction = "out"
        name = "all"
        connection = "brokers"
        addExternalPrefix = "b."
        delExternalPrefix = "a."
        distribution = "linkBalanced"
        """
    (route,) = parse_configuration(text, source="f").link_routes
    assert route == LinkRouteSettings(
        pattern="a/*/#",
        direction="out",
        name="all",
        connection="brokers",
        add_external_prefix="b.",
        del_external_prefix="a.",
    )


def test_names_tell_link_routes_apart_that_share_a_pattern() -> None:
    names = {
        LinkRouteSettings(pattern="a", direction="in").name,
        LinkRouteSettings(pattern="a", direction="out").name,
        LinkRouteSettings(pattern="a", direction="in", container_id="c").name,
        LinkRouteSettings(pattern="a", direction="in", connection="d").name,
    }
    assert len(names) == 4
