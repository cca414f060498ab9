"""Connection of a source, in a thread that runs Trio.

Spark's thread requests batches and commits them. The intake's thread receives messages and holds
them, unsettled, until their batch is committed. Only the intake's thread uses the AMQP client, so a
commit passes the deliveries to settle to that thread.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Iterable

import trio

from router.client import ClientConnection, ClientError, LinkLost, Receiver, connect
from router_spark_amqp.attaching import in_time
from router_spark_amqp.ledger import Batch, Ledger, Row
from router_spark_amqp.options import Options, need_address
from router_spark_amqp.selectors import combine

LOG = logging.getLogger("router_spark_amqp")

# Pauses between attempts to reconnect: the first, and the longest.
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
# Longest time without a message from a peer during a drain.
DRAIN_TIMEOUT_S = 60.0


class SourceLost(RuntimeError):
    """Error about a source that has lost its connection and cannot reconnect."""


class Intake:
    """Receiver of one address, which runs in a thread.

    If `drains`, it receives only the messages that the sender has now.

    At most `options.stream_credit` rows and about `options.max_bytes` octets are held at a time.
    When a limit is reached, no more messages are taken, so the sender runs out of credit or the
    session's window closes.
    """

    def __init__(self, options: Options, *, drains: bool = False) -> None:
        self._options = options
        self._address = need_address(options)
        self._drains = drains
        # idleSeconds is for peers that cannot drain: silence means that nothing is left
        self._must_drain = drains and options.idle_s is None
        self._ledger = Ledger()
        self._changed = threading.Condition()
        self._token: trio.lowlevel.TrioToken | None = None
        self._scope = trio.CancelScope()
        self._room = trio.Event()
        self._has_attached = False
        self._has_received = False
        self._attached_at = math.inf
        self._is_dry = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="amqp-intake", daemon=True)

    # Called in Spark's thread.

    def start(self, position: int) -> None:
        """Connect and attach; the positions of rows begin at `position`.

        Raises SourceLost if the first attempt fails.
        """
        self._ledger.position = position
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._has_attached or self._failure is not None)
        self.check()

    def check(self) -> None:
        """Raise SourceLost if the source has failed and does not reconnect any more."""
        if self._failure is not None:
            url = self._options.url
            place = f"{self._address} at {url.host}:{url.port}"
            raise SourceLost(f"cannot receive from {place}: {self._failure}") from self._failure

    def wait(self, timeout_s: float) -> bool:
        """Wait up to `timeout_s` for a row that is in no batch yet; return whether there is one.

        Returns earlier if no more rows will arrive.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._ledger.waiting or self._is_dry or self._failure, timeout_s
            )
            return self._ledger.waiting > 0

    @property
    def waiting(self) -> int:
        """Return how many rows are in no batch yet."""
        return self._ledger.waiting

    def make_batch(self, limit: int | None) -> Batch | None:
        """Make a batch of at most `limit` waiting rows; return None if there are none."""
        with self._changed:
            return self._ledger.make_batch(limit)

    def drain(self) -> list[Row]:
        """Wait until the drain has ended or a limit is reached; return all rows, as one batch.

        Raises SourceLost if the source has failed.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_dry or self._failure is not None or not self._has_room()
            )
            batch = self._ledger.make_batch(None)
        self.check()
        return [] if batch is None else batch.rows

    def between(self, begin: int, end: int) -> list[Row]:
        """Return the rows of the uncommitted batches between the positions `begin` and `end`."""
        with self._changed:
            return self._ledger.between(begin, end)

    @property
    def has_uncommitted(self) -> bool:
        """Return whether there is a batch that is not committed yet."""
        return self._ledger.has_uncommitted

    @property
    def is_dry(self) -> bool:
        """Return whether a drain has ended: nothing is left, or the sender was silent too long."""
        return self._is_dry

    def commit(self, position: int) -> None:
        """Accept the messages of the batches up to a position.

        The dispositions are on their way when this returns.
        """
        with self._changed:
            rows = self._ledger.commit(position)
        if rows and self._thread.is_alive():
            try:
                trio.from_thread.run(self._accept, rows, trio_token=self._token)
            except trio.RunFinishedError:
                # the messages will be delivered again
                LOG.warning("%d messages could not be accepted: the source was stopped", len(rows))

    def stop(self) -> None:
        """Release or modify uncommitted messages, close the connection, and end the thread."""
        if self._thread.is_alive() and self._token is not None:
            try:
                trio.from_thread.run_sync(self._scope.cancel, trio_token=self._token)
            except trio.RunFinishedError:
                pass
            self._thread.join()

    # Called in the intake's thread, which runs Trio.

    def _run(self) -> None:
        try:
            trio.run(self._live)
        except Exception as error:
            # Broad on purpose: whatever ended this thread, Spark's thread must learn of it, or it
            # would wait for ever.
            self._fail(error)
            raise

    def _fail(self, error: Exception) -> None:
        with self._changed:
            self._failure = error
            self._changed.notify_all()

    async def _live(self) -> None:
        """Receive until stopped; when the link is lost, reconnect within a time limit.

        When a link is lost, the time limit restarts only if the link was the first one, has brought
        a message, or has lasted for more than `LONGEST_PAUSE_S`. So reconnecting to a peer that
        accepts each attach and then fails comes to an end.
        """
        self._token = trio.lowlevel.current_trio_token()
        pause_s = FIRST_PAUSE_S
        give_up_at = -math.inf
        with self._scope:
            while True:
                self._has_received = False
                self._attached_at = math.inf
                was_new = not self._has_attached
                try:
                    await self._receive()
                except ClientError as error:
                    LOG.warning("no link from %s: %s", self._address, error)
                    now = trio.current_time()
                    was_good = self._has_received or now > self._attached_at + LONGEST_PAUSE_S
                    if was_good or (was_new and self._has_attached):
                        pause_s = FIRST_PAUSE_S
                        give_up_at = now + self._options.reconnect_timeout_s
                    if now + pause_s > give_up_at:
                        self._fail(error)
                        return
                await trio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _receive(self) -> None:
        """Connect, attach, and receive. Raises ClientError when the link is lost."""
        options = self._options
        async with connect(options.url, timeout_s=options.connect_timeout_s) as connection:
            receiver = await self._attach(connection)
            self._attached_at = trio.current_time()
            with self._changed:
                self._has_attached = True
                self._changed.notify_all()
            try:
                await self._take_all(receiver)
            except ClientError:
                self._lose_link()
                raise
            except trio.Cancelled:
                self._give_back()
                raise

    async def _attach(self, connection: ClientConnection) -> Receiver:
        """Attach, with a selector if there is one. Raises ClientError if that fails.

        If the peer refuses the selector, attach again without the part made from the query's
        filters.
        """
        options = self._options
        selectors = [combine(options.selector, options.pushed_selector)]
        if options.pushed_selector is not None:
            selectors.append(options.selector)
        while True:
            opening = connection.open_receiver(
                self._address,
                credit=options.stream_credit,
                drain=self._must_drain,
                selector=selectors.pop(0),
            )
            try:
                return await in_time(opening, options.connect_timeout_s)
            except LinkLost as error:
                if not selectors:
                    raise
                LOG.warning("filters are not pushed down to %s: %s", self._address, error)

    async def _take_all(self, receiver: Receiver) -> None:
        while True:
            while not self._has_room():
                self._room = trio.Event()
                await self._room.wait()
            if not await self._has_message(receiver):
                with self._changed:
                    self._is_dry = True
                    self._changed.notify_all()
                # keep the link to settle the held messages, but take no more
                await trio.sleep_forever()
            rows: list[Row] = []
            octets = self._ledger.octets
            most = self._options.stream_credit - self._ledger.count
            while receiver.waiting and len(rows) < most and octets < self._options.max_bytes:
                received = receiver.receive_nowait()
                octets += len(received.payload)
                rows.append(
                    Row(received, received.payload, received.message_format, received.is_settled)
                )
            self._has_received = True
            with self._changed:
                self._ledger.add(rows)
                self._changed.notify_all()

    async def _has_message(self, receiver: Receiver) -> bool:
        """Wait for a message; return False if the drain has ended."""
        if not self._drains:
            return await receiver.wait_for_message()
        idle_s = self._options.idle_s
        with trio.move_on_after(DRAIN_TIMEOUT_S if idle_s is None else idle_s):
            return await receiver.wait_for_message()
        if idle_s is None:
            LOG.warning("%s did not end a drain within %g s", self._address, DRAIN_TIMEOUT_S)
        return False

    def _has_room(self) -> bool:
        ledger, options = self._ledger, self._options
        return ledger.count < options.stream_credit and ledger.octets < options.max_bytes

    async def _accept(self, rows: Iterable[Row]) -> None:
        lost = 0
        for row in rows:
            if not row.is_settled:
                try:
                    row.delivery.accept()
                except ClientError:
                    lost += 1
        self._room.set()
        if lost:
            LOG.warning("the link of %d messages was lost before they were accepted", lost)
        # let the task that sends run before Spark's thread goes on
        for _ in range(2):
            await trio.lowlevel.checkpoint()

    def _lose_link(self) -> None:
        with self._changed:
            self._ledger.lose_link()

    def _give_back(self) -> None:
        """Release waiting rows; modify rows in batches, because Spark may have processed them."""
        with self._changed:
            waiting, batched = self._ledger.give_up()
        try:
            for row in waiting:
                row.delivery.release()
            for row in batched:
                row.delivery.modify(delivery_failed=True)
        except ClientError:
            # the link is lost: the peer delivers them again without a disposition
            pass
