"""Messages in files: written before they are accepted, the same again when they are replayed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from router_spark_amqp.ledger import Row
from router_spark_amqp.readers import OptionError
from router_spark_amqp.spool import Spool, SpoolLost

from support.proton_peers import ProtonPeers
from support.routers import RouterProcess

pytestmark = pytest.mark.spark


class Unasked:
    """A delivery that nobody settles."""

    def accept(self) -> None:
        raise NotImplementedError

    def release(self) -> None:
        raise NotImplementedError

    def modify(self, *, delivery_failed: bool = False, undeliverable_here: bool = False) -> None:
        raise NotImplementedError


def rows(*payloads: bytes) -> list[Row]:
    return [Row(Unasked(), payload, 0, False) for payload in payloads]


def test_segments_are_found_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    assert spool.end == 0
    spool.write(0, rows(b"a", b"b"))
    segment = spool.write(2, rows(b"c"))
    spool.close()
    again = Spool(tmp_path / "spool")
    assert again.end == 3
    assert again.between(2, 3) == [segment]
    with pa.ipc.open_file(str(segment.path)) as file:
        assert file.get_batch(0).column("payload").to_pylist() == [b"c"]
    again.close()


def test_a_batch_has_whole_segments(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for begin in (0, 2, 4):
        spool.write(begin, rows(b"a", b"b"))
    assert spool.next_end(0, 1) == 2
    assert spool.next_end(0, 5) == 4
    assert spool.next_end(2, None) == 6
    assert spool.next_end(6, None) is None
    spool.close()


def test_what_is_committed_is_removed(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.write(0, rows(b"a", b"b"))
    spool.write(2, rows(b"c"))
    spool.forget(2)
    assert [each.name for each in tmp_path.glob("*.arrow")] == [f"{2:020d}-{3:020d}.arrow"]
    with pytest.raises(SpoolLost, match="rows 0 to 2 are not in"):
        spool.between(0, 2)
    spool.close()


@pytest.mark.parametrize("lost", [0, 2, 4])
def test_a_batch_with_a_missing_segment_is_lost(tmp_path: Path, lost: int) -> None:
    spool = Spool(tmp_path)
    for begin in (0, 2, 4):
        segment = spool.write(begin, rows(b"a", b"b"))
        if begin == lost:
            segment.path.unlink()
    spool.close()
    again = Spool(tmp_path)
    with pytest.raises(SpoolLost, match="rows 0 to 6 are not in"):
        again.between(0, 6)
    again.close()


def test_a_file_that_was_not_finished_is_removed(tmp_path: Path) -> None:
    unfinished = tmp_path / f".{0:020d}-{2:020d}.arrow"
    unfinished.write_bytes(b"half")
    spool = Spool(tmp_path)
    assert (spool.end, unfinished.exists()) == (0, False)
    spool.close()


def test_a_folder_is_for_one_query(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    with pytest.raises(OptionError, match="which another query uses: each query needs its own"):
        Spool(tmp_path)
    spool.close()
    Spool(tmp_path).close()


def test_a_batch_is_replayed_row_for_row(
    spark: Any,
    spark_router: RouterProcess,
    proton: ProtonPeers,
    address: str,
    ids: Any,
    stream: Any,
    tmp_path: Path,
) -> None:
    url = spark_router.url(address)
    frame = stream(url, delivery="spool", spoolDirectory=tmp_path / "spool", maxRowsPerBatch=100)
    seen: dict[int, list[list[str]]] = {}
    fails = True

    def keep(batch: Any, number: int) -> None:
        found = sorted(row.message_id for row in batch.select("message_id").collect())
        seen.setdefault(number, []).append(found)
        if fails and number == 1:
            raise RuntimeError("as if it had died")

    def start() -> Any:
        writer = frame.writeStream.foreachBatch(keep)
        return writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()

    sent = ids(url, 500)
    query = start()
    proton.until(lambda: (sent.all_accepted(), not query.isActive)[1], "the query has failed")
    fails = False
    query = start()
    count = [0]

    def all_seen() -> bool:
        sent.all_accepted()
        count[0] = len({one for found in seen.values() for one in found[-1]})
        return count[0] == 500

    proton.until(all_seen, "all is seen")
    proton.until(sent.all_accepted, "all is accepted")
    query.stop()
    first, second = seen[1]
    assert first == second
    assert first
    total = Counter(one for found in seen.values() for one in found[-1])
    assert set(total) == sent.accepted
    assert total.total() - 500 <= sent.repeated
