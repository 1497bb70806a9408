"""Following a run that another replica executes; see `moorage.runs.relay`."""

import json
from collections.abc import AsyncIterator, Sequence

from moorage.contract.clock import Clock
from moorage.contract.stores import RunRecord, Store, StreamRepository, StreamRow
from moorage.runs.feeds import KEPT_SECONDS, StreamItem, gap, position_of
from moorage.runs.relay import LOOK_SECONDS as RELAY_LOOK_SECONDS
from moorage.runs.relay import wait_for, watching

ASKED_SECONDS = 30.0
ASK_AGAIN_SECONDS = 10.0
LOOK_SECONDS = 0.5
PATIENCE_SECONDS = RELAY_LOOK_SECONDS + 1.0
"""How long a replica may take to notice that somebody follows."""
PAGE = 200
LAST = frozenset({"end", "error"})


class RemoteFeed:
    """One client's view of a run that executes elsewhere, with the ids that it has there.

    ``complete``: the stream's own end has been passed on. Otherwise nobody has it any more, and what came
    after `last_id` is not known.
    """

    def __init__(
        self, store: Store, streams: StreamRepository, clock: Clock, run: RunRecord, *, replica_id: str
    ) -> None:
        self.complete = False
        self.last_id: str | None = None
        self._store = store
        self._streams = streams
        self._clock = clock
        self._run = run
        self._replica_id = replica_id

    async def read(self, *, modes: frozenset[str], last_event_id: str | None) -> AsyncIterator[StreamItem]:
        """Items after ``last_event_id``, until the end or until it is clear that nobody has it."""
        self.last_id = last_event_id
        cursor = _Cursor(last_event_id)
        asked_at: float | None = None
        token: str | None = None
        quiet_since: float | None = None
        async with watching(self._store, "streams", self._run.thread_id) as moved:
            while True:
                moved.clear()
                now = self._clock.monotonic()
                if asked_at is None or now - asked_at >= ASK_AGAIN_SECONDS:
                    token, asked_at = await self._streams.ask(self._run.run_id, ASKED_SECONDS), now
                if token is None:
                    return  # there is no such run any more
                rows = await self._streams.list(token, after=cursor.reads_after, limit=PAGE)
                for missing, row in cursor.take(rows):
                    if missing is not None:
                        yield gap(after=missing, first_kept=str(row.number), thread_id=self._run.thread_id)
                    self.last_id = str(row.number)
                    if row.mode is None or not modes or row.mode in modes:
                        yield StreamItem(self.last_id, row.event, json.loads(row.data_json))
                if any(row.mode is None and row.event in LAST for row in rows):
                    self.complete = True  # also where the client has seen it already
                    return
                if rows:
                    quiet_since = None
                    continue
                quiet_since = now if quiet_since is None else quiet_since
                patience = await self._patience()
                if patience is not None and now - quiet_since >= patience:
                    return
                if now - quiet_since >= PATIENCE_SECONDS:
                    cursor.doubt(await self._streams.list(token, after=0, limit=1))
                await wait_for(moved, LOOK_SECONDS)

    async def _patience(self) -> float | None:
        """How long the rest of the stream is worth waiting for; None while the run goes on."""
        run = await self._store.runs.get(self._run.run_id)
        if run is None:
            return 0.0
        if not run.status.terminal:
            return None
        ended_ago = (self._clock.now() - run.updated_at).total_seconds()
        # The replica that has it would be this one, or has forgotten it.
        return 0.0 if run.owner == self._replica_id or ended_ago > KEPT_SECONDS else PATIENCE_SECONDS


class _Cursor:
    """Where a client is, and whether the id that it came with is one of this stream's."""

    def __init__(self, last_event_id: str | None) -> None:
        position = position_of(last_event_id)
        self._given = last_event_id
        self._position = position or 0
        self._missing = last_event_id if position is None else None
        self._sure = not self._position

    @property
    def reads_after(self) -> int:
        return self._position if self._sure else self._position - 1

    def take(self, rows: Sequence[StreamRow]) -> list[tuple[str | None, StreamRow]]:
        """The new rows, and with each what is missing before it (None: nothing)."""
        taken: list[tuple[str | None, StreamRow]] = []
        for row in rows:
            self._sure = True
            if row.number <= self._position:
                continue
            if row.number > self._position + 1 and self._missing is None:
                self._missing = str(self._position)
            taken.append((self._missing, row))
            self._position, self._missing = row.number, None
        return taken

    def doubt(self, first: Sequence[StreamRow]) -> None:
        """Nothing comes after the id, though there is a stream: the id is not one of its."""
        if not self._sure and first:
            self._position, self._missing, self._sure = 0, self._given, True
