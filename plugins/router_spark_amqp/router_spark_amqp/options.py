"""Options of `format("amqp")`: how each option is read, and checks before connecting."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

import attrs

from router.client import Url, parse_url
from router_spark_amqp.readers import (
    OptionError,
    Read,
    one_of,
    read_flag,
    read_path,
    read_seconds,
    read_text,
    whole,
)

# Options that Spark itself adds to those of a source or sink.
_SPARKS = frozenset({"checkpointlocation", "path", "queryname"})


class Body(StrEnum):
    """Format of message bodies, which determines the columns of rows."""

    RAW = "raw"
    JSON = "json"
    AVRO = "avro"


class Mode(StrEnum):
    """Treatment of a body that does not match the schema."""

    PERMISSIVE = "permissive"
    FAILFAST = "failfast"


class Delivery(StrEnum):
    """Place where messages are kept until Spark commits them: the sender, or spool files."""

    HOLD = "hold"
    SPOOL = "spool"


@attrs.frozen
class Options:
    """Options of a query. Without `address`, a sink uses the address in each row's column `to`."""

    url: Url
    address: str | None = None
    format: Body = Body.RAW
    mode: Mode = Mode.PERMISSIVE
    avro_schema: str | None = None
    max_rows_per_batch: int | None = None
    credit: int | None = None
    max_bytes: int = 256 * 1024 * 1024
    partitions: int = 2
    delivery: Delivery = Delivery.HOLD
    spool_directory: Path | None = None
    connect_timeout_s: float = 10.0
    reconnect_timeout_s: float = 300.0
    idle_s: float | None = None
    in_flight: int = 10_000
    outcome_timeout_s: float = 60.0
    durable: bool = False
    selector: str | None = None
    push_filters: bool = False
    # made from filters that Spark has pushed down; Spark applies them again
    pushed_selector: str | None = None

    @property
    def rows_per_batch(self) -> int:
        """Return the maximum number of rows in a micro-batch."""
        return 10_000 if self.max_rows_per_batch is None else self.max_rows_per_batch

    @property
    def rows_per_read(self) -> int:
        """Return the maximum number of rows that a batch query reads."""
        return 100_000 if self.max_rows_per_batch is None else self.max_rows_per_batch

    @property
    def stream_credit(self) -> int:
        """Return the maximum number of messages in transit or unsettled.

        Spark commits a batch when it plans the next one, so the default has room for two batches.
        """
        return 2 * self.rows_per_batch if self.credit is None else self.credit


# By the name of an option: the attribute of Options, and the reader of its text.
OPTIONS: Mapping[str, tuple[str, Read]] = MappingProxyType(
    {
        "address": ("address", read_text),
        "format": ("format", one_of(Body)),
        "mode": ("mode", one_of(Mode)),
        "avroSchema": ("avro_schema", read_text),
        "maxRowsPerBatch": ("max_rows_per_batch", whole(1, 1_000_000)),
        "credit": ("credit", whole(1, 2_000_000)),
        "maxBytes": ("max_bytes", whole(1, 2**40)),
        "partitions": ("partitions", whole(1, 1024)),
        "delivery": ("delivery", one_of(Delivery)),
        "spoolDirectory": ("spool_directory", read_path),
        "connectTimeoutSeconds": ("connect_timeout_s", read_seconds),
        "reconnectTimeoutSeconds": ("reconnect_timeout_s", read_seconds),
        "idleSeconds": ("idle_s", read_seconds),
        "inFlight": ("in_flight", whole(1, 1_000_000)),
        "outcomeTimeoutSeconds": ("outcome_timeout_s", read_seconds),
        "durable": ("durable", read_flag),
        "selector": ("selector", read_text),
        "pushFilters": ("push_filters", read_flag),
    }
)
# Options that make up the URL.
_PLACE = ("url", "user", "password", "saslMechanisms")
# SASL mechanisms that the client knows.
_MECHANISMS = (
    *("ANONYMOUS", "EXTERNAL", "PLAIN"),
    *("SCRAM-SHA-1", "SCRAM-SHA-256", "SCRAM-SHA-512"),
)
_KNOWN = frozenset(name.lower() for name in (*OPTIONS, *_PLACE)) | _SPARKS


def parse_options(given: Mapping[str, str]) -> Options:
    """Parse the options of a query, whose names are case-insensitive.

    Raises OptionError if an option is unknown, missing or invalid.
    """
    texts = {name.lower(): text for name, text in given.items()}
    for name in texts:
        if name not in _KNOWN:
            allowed = ", ".join(sorted((*OPTIONS, *_PLACE)))
            raise OptionError(f"there is no option {name}; the options are {allowed}")
    url = _url(texts)
    values = {
        attribute: read(name, texts[name.lower()])
        for name, (attribute, read) in OPTIONS.items()
        if name.lower() in texts
    }
    values.setdefault("address", url.address or None)
    # each reader returns the type of its attribute
    options = attrs.evolve(Options(url), **values)  # type: ignore[arg-type]
    _check_together(options)
    return options


def need_address(options: Options) -> str:
    """Return the address to receive from. Raises OptionError if there is none."""
    if options.address is None:
        raise OptionError(
            "option address is missing: give the name of a node, such as orders, here or after"
            " the slash in option url"
        )
    return options.address


def _check_together(options: Options) -> None:
    """Raise OptionError if options that are each valid cannot be combined."""
    if options.format is Body.AVRO and options.avro_schema is None:
        raise OptionError("option avroSchema is missing: format avro needs a schema, as JSON")
    if options.delivery is Delivery.SPOOL and options.spool_directory is None:
        raise OptionError(
            "option spoolDirectory is missing: delivery spool needs a folder that the driver and"
            " all executors can access, and that no other query uses"
        )
    if options.delivery is Delivery.HOLD and options.spool_directory is not None:
        raise OptionError("option spoolDirectory requires delivery=spool, but delivery=hold is set")
    if options.stream_credit < options.rows_per_batch:
        raise OptionError(
            f"option credit is {options.credit}: it must be at least {options.rows_per_batch}"
            " (maxRowsPerBatch)"
        )


def _url(texts: Mapping[str, str]) -> Url:
    shape = "it must be amqp://[user:password@]host[:port][/address]"
    if not texts.get("url"):
        raise OptionError(f"option url is missing: {shape}")
    try:
        url = parse_url(texts["url"])
    except ValueError as error:
        raise OptionError(f"option url: {error}; {shape}") from None
    user = texts.get("user", url.user)
    password = texts.get("password", url.password)
    if password is not None and not user:
        raise OptionError("option user is missing: a password was given without a user")
    mechanisms = tuple(texts.get("saslmechanisms", "").replace(",", " ").upper().split())
    for name in mechanisms:
        if name not in _MECHANISMS:
            raise OptionError(
                f"option saslMechanisms has {name}: each must be one of {', '.join(_MECHANISMS)}"
            )
    return attrs.evolve(url, user=user, password=password, mechanisms=mechanisms)
