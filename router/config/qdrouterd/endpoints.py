"""Translate settings of Dispatch's listeners and connectors: authentication, HTTP and costs.

These settings are translated together, because some of them depend on others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from router.config.endpoints import CLEARTEXT, TOKENS
from router.config.http_checks import HTTP_ATTRIBUTES, WEBSOCKET_ROLES
from router.config.kinds import ValueNotAllowed
from router.config.mistakes import format_path
from router.config.network_checks import INTER_ROUTER
from router.config.qdrouterd.sasl import SaslUsers
from router.config.qdrouterd.table import Table
from router.config.scram import MECHANISMS as SCRAM
from router.config.setting import Setting
from router.config.urls import names_this_host

Remarks = Callable[..., None]

_USUAL: Final = ("role", "authenticatePeer", "saslMechanisms", "idleTimeoutSeconds")

_AMQP_ALONE: Final = "it concerns AMQP, which this listener does not speak"
_OF_HTTP: Final = ("metrics", "healthz", "websockets")
# Attributes of a listener that admit only peers with TLS.
_REQUIRE_TLS: Final = ("requireSsl", "requireEncryption")


def adapt_endpoint(
    table: Table, fields: Mapping[str, Setting], users: SaslUsers, remark: Remarks
) -> None:
    """Adapt a listener or connector to this router, or mark it as left out.

    `users` are the users of listeners without a usersFile. `remark` is called to report a change.
    """
    _fit_cost(table, remark)
    if table.name == "listener":
        _fit_tls(table, remark)
        if table.values.get("socketAddressFamily") == "IPv6" and "host" not in table.values:
            table.data["host"] = table.values["host"] = "::"
        if "httpRootDir" in table.values:
            # a listener that serves files speaks HTTP, even without http
            table.values["http"] = True
        if table.values.get("http"):
            _fit_http(table, fields, users, remark)
        else:
            table.excluded_attributes = _OF_HTTP
            for key in _OF_HTTP:
                table.values.pop(key, None)
            _fit_authentication(table, fields, users, remark)
    else:
        _fit_login(table, fields, remark)
        _fit_password(table, remark)


def _fit_cost(table: Table, remark: Remarks) -> None:
    if table.values.get("role") != INTER_ROUTER and table.values.pop("cost", 1) != 1:
        text = "has no effect except between interior routers"
        remark("ignored", table.line_of("cost"), f"{format_path(table.place)}.cost", text)


def _fit_tls(table: Table, remark: Remarks) -> None:
    """Admit peers without TLS as Dispatch does: unless the file requires TLS."""
    values, place = table.values, format_path(table.place)
    if "sslProfile" in values:
        if not any(values.get(key) for key in _REQUIRE_TLS):
            values["requireSsl"] = False
        return
    for key in _REQUIRE_TLS:
        if values.pop(key, False):
            text = "without an sslProfile no peer can use TLS, and every peer is let in"
            remark("guard", table.line_of(key), f"{place}.{key}", text, True)


def _fit_http(
    table: Table, fields: Mapping[str, Setting], users: SaslUsers, remark: Remarks
) -> None:
    """Keep only attributes that this router's listeners for HTTP have, and report the others.

    In Dispatch, such a listener serves AMQP over WebSockets unless the file says otherwise. If
    peers must authenticate, each client of HTTP with TLS has to show a certificate.
    """
    values, place = table.values, format_path(table.place)
    if values.get("authenticatePeer"):
        if "sslProfile" in values:
            values.setdefault("clientCertificate", "required")
            values.setdefault("saslMechanisms", "EXTERNAL")
        if _mechanisms(table) == ["ANONYMOUS"] and values.get("websockets", True):
            text = "taken as false: peers must authenticate, and only ANONYMOUS is offered"
            remark("changed", table.line_of("websockets"), f"{place}.websockets", text)
            values["websockets"] = False
    # as in Dispatch, where this is the default port even with http
    values.setdefault("port", "amqp")
    if values.setdefault("websockets", True):
        # for requireSsl, because with an sslProfile every HTTP client has to use TLS anyway
        table.excluded_attributes = (*_REQUIRE_TLS, "cost")
        for key in table.excluded_attributes:
            values.pop(key, None)
        if values.get("role", "normal") not in WEBSOCKET_ROLES:
            text = "only clients can connect over WebSockets here, not other routers"
            remark("missing", table.line_of("role"), f"{place}.role", text)
            del values["role"]
        _fit_authentication(table, fields, users, remark)
        return
    table.allowed_attributes = HTTP_ATTRIBUTES
    if values.get("metrics") is False and values.get("healthz") is False:
        table.left_out = True
        remark("missing", table.section.line, place, "nothing is left to serve")
        return
    for key in [key for key in values if key not in (*HTTP_ATTRIBUTES, "httpRootDir")]:
        # attributes that almost every listener has are not worth a remark; with an sslProfile,
        # every client of HTTP has to use TLS
        if key not in (*_REQUIRE_TLS, *_USUAL):
            remark("ignored", table.line_of(key), f"{place}.{key}", _AMQP_ALONE)
        del values[key]


def _fit_authentication(
    table: Table, fields: Mapping[str, Setting], users: SaslUsers, remark: Remarks
) -> None:
    """Keep only the supported SASL mechanisms of a listener, and report the others.

    If peers must authenticate and no mechanism is left for that, the listener admits all peers.
    The file is then refused unless weaker security is accepted.
    """
    values, place = table.values, format_path(table.place)
    wanted = _mechanisms(table)
    if not wanted and users.admits("PLAIN"):
        # without saslMechanisms, Dispatch offers all mechanisms that the SASL configuration allows
        wanted = ["PLAIN"] if values.get("authenticatePeer") else ["PLAIN", "ANONYMOUS"]
    known = _known(table, fields, wanted)
    line = table.line_of("saslMechanisms")
    unknown = [name for name in wanted if name not in known]
    if unknown:
        text = f"nobody can log in with {' or '.join(unknown)}"
        remark("missing", line, f"{place}.saslMechanisms", text)
    of_users = [name for name in known if _needs_user(name)]
    if of_users and "usersFile" not in values:
        lost = [name for name in of_users if not users.admits(name)]
        known = [name for name in known if name not in lost]
        if lost:
            text = f"nobody can log in with {' or '.join(lost)}: {_why_lost(users)}"
            remark("missing", line, f"{place}.saslMechanisms", text)
        if len(lost) < len(of_users):
            values["usersFile"] = users.database
            text = f"taken from {users.source}"
            remark("default", line, f"{place}.usersFile", text, users.database)
    must = bool(values.get("authenticatePeer"))
    if must and not [name for name in known if name != "ANONYMOUS"] and wanted != ["ANONYMOUS"]:
        text = "no supported way to authenticate is left, and every peer is let in"
        remark("guard", table.line_of("authenticatePeer"), f"{place}.authenticatePeer", text, True)
        values["authenticatePeer"] = False
        known = ["ANONYMOUS"]
    if wanted:
        values["saslMechanisms"] = " ".join(dict.fromkeys(known)) or "ANONYMOUS"


def _why_lost(users: SaslUsers) -> str:
    """Return why the users of Cyrus SASL cannot log in with a mechanism, and what to do."""
    if users.database and users.admits("PLAIN"):
        return (
            f"{users.database} has no keys for it. `trioute user import` makes them; give the "
            "file that it writes as usersFile here"
        )
    if users.database:
        return f"mech_list in {users.source} does not allow it"
    where = f" ({users.problem})" if users.problem else ""
    return (
        f"there is no database of users of Cyrus SASL{where}. Write them to a file with "
        "`trioute user add`, and give usersFile: FILE here"
    )


def _fit_login(table: Table, fields: Mapping[str, Setting], remark: Remarks) -> None:
    """Keep only the SASL mechanisms that a connector can use; without any, omit the connector."""
    password = table.values.get("saslPassword")
    if isinstance(password, str) and password.startswith("literal:"):
        # in Dispatch this is no prefix here, unlike in an sslProfile, but a part of the password
        table.values["saslPassword"] = f"pass:{password}"
    wanted = _mechanisms(table)
    if not wanted:
        return
    known = _known(table, fields, wanted)
    others = [name for name in known if not _needs_login(name)]
    if others and "saslUsername" not in table.values:
        # there is no user to log in as
        known = others
    path, line = f"{format_path(table.place)}.saslMechanisms", table.line_of("saslMechanisms")
    if not known:
        table.left_out = True
        text = f"logging in with {' or '.join(wanted)} is not supported; the connector is left out"
        remark("missing", line, path, text)
        return
    unknown = [name for name in wanted if name not in known]
    if unknown:
        remark("ignored", line, path, f"{' or '.join(unknown)} cannot be used", " ".join(wanted))
    if not any(_needs_login(name) for name in known):
        for key in ("saslUsername", "saslPassword"):
            if table.values.pop(key, None) is not None:
                text = "has no effect without PLAIN, SCRAM or a token"
                remark("ignored", table.line_of(key), f"{format_path(table.place)}.{key}", text)
    table.values["saslMechanisms"] = " ".join(dict.fromkeys(known))


def _fit_password(table: Table, remark: Remarks) -> None:
    """Let a connector send its password without TLS, as Dispatch does, if the file asks for it."""
    values, key = table.values, "allowInsecureAuthentication"
    if (
        table.left_out
        or "saslUsername" not in values
        or "sslProfile" in values
        or key in values
        or not any(name in CLEARTEXT for name in _mechanisms(table) or ["PLAIN"])
        or names_this_host(str(values.get("host", "127.0.0.1")))
    ):
        return
    values[key] = True
    text = "taken as true, because Dispatch sends passwords without TLS; here it would be false"
    remark("default", table.section.line, f"{format_path(table.place)}.{key}", text)


def _needs_user(mechanism: str) -> bool:
    return mechanism == "PLAIN" or mechanism in SCRAM


def _needs_login(mechanism: str) -> bool:
    """Return whether a connector needs a user, and a password or token, for a mechanism."""
    return _needs_user(mechanism) or mechanism in TOKENS


def _known(table: Table, fields: Mapping[str, Setting], wanted: list[str]) -> list[str]:
    """Return the wanted mechanisms that this router supports; EXTERNAL needs TLS."""
    return [
        name
        for name in wanted
        if _takes(fields, "saslMechanisms", [name])
        and (name != "EXTERNAL" or "sslProfile" in table.values)
    ]


def adapt_profile(table: Table, fields: Mapping[str, Setting], remark: Remarks) -> None:
    """Adapt a TLS profile to this router; `remark` is called to report a change."""
    values, place = table.values, format_path(table.place)
    file = values.pop("passwordFile", None)
    if file is not None and "password" not in values:
        values["password"] = f"file:{file}"
    if "protocols" in values:
        wanted = str(values["protocols"]).replace(",", " ").split()
        known = [name for name in wanted if _takes(fields, "protocols", [name])]
        for name in wanted:
            if name not in known:
                text = f"{name} is not supported, because it is not safe"
                remark("missing", table.line_of("protocols"), f"{place}.protocols", text)
        values["protocols"] = " ".join(dict.fromkeys(known))
        if not known:
            del values["protocols"]
    if "uidFormat" in values and not _takes(fields, "uidFormat", values["uidFormat"]):
        # Dispatch logs an error for each connection, and takes the subject
        text = "is not a valid format; the name of a peer's user is the whole subject"
        remark("missing", table.line_of("uidFormat"), f"{place}.uidFormat", text)
        del values["uidFormat"]


def _mechanisms(table: Table) -> list[str]:
    given = table.values.get("saslMechanisms")
    return str(given).replace(",", " ").split() if given else []


def _takes(fields: Mapping[str, Setting], key: str, value: object) -> bool:
    """Return whether this router's attribute `key` allows a value."""
    try:
        fields[key].kind.read(value)
    except ValueNotAllowed:
        return False
    return True
