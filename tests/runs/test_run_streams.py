"""Streams: what is kept, what is admitted to be missing, and who sees what (RUN-8)."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest
from support.clock import FakeClock
from support.runs import ALICE, ScriptedAssistant, request

from moorage.contract import AssistantEvent, RunContext, RunRecord, RunStatus
from moorage.runs.feeds import Feeds, RunFeed, RunResult

NOW = datetime(2030, 1, 1, tzinfo=UTC)
RUN = RunRecord(
    run_id="r1",
    thread_id="t1",
    user_id="alice",
    assistant_id="echo",
    status=RunStatus.RUNNING,
    metadata={},
    created_at=NOW,
    updated_at=NOW,
)
ALL: frozenset[str] = frozenset()


async def collected(feed: RunFeed, last: str | None = None, modes: frozenset[str] = ALL) -> list[Any]:
    return [item async for item in feed.read(modes=modes, last_event_id=last)]


def closed(feed: RunFeed) -> RunFeed:
    feed.close(RunResult(RUN, None), at=0.0)
    return feed


@pytest.mark.req("RUN-8")
async def test_a_stream_is_replayed_whole_or_from_an_id() -> None:
    feed = RunFeed(RUN)
    for number in range(5):
        feed.publish("values", {"n": number})
    closed(feed)
    for start in (None, "-1", "0"):
        assert [item.data["n"] for item in await collected(feed, start)] == [0, 1, 2, 3, 4]
    assert [item.id for item in await collected(feed, "3")] == ["4", "5"]
    assert await collected(feed, "5") == []


@pytest.mark.req("RUN-8")
@pytest.mark.parametrize("limits", [{"kept_items": 3}, {"kept_bytes": 30}])
async def test_an_id_older_than_what_is_kept_answers_one_gap_that_says_what_is_missing(
    limits: dict[str, int],
) -> None:
    feed = RunFeed(RUN, **limits)
    for number in range(10):
        feed.publish("values", {"n": number})
    items = await collected(closed(feed), "2")
    assert [item.event for item in items] == ["gap", "values", "values", "values"]
    assert items[0].id is None
    assert items[0].data["missing_after"] == "2"
    assert items[0].data["missing_before"] == items[1].id == "8"
    assert items[0].data["reload"] == "/threads/t1/state"
    assert [item.event for item in await collected(feed)].count("gap") == 1
    assert [item.event for item in await collected(feed, "8")] == ["values", "values"]


@pytest.mark.req("RUN-8")
@pytest.mark.parametrize("foreign", ["99", "abc", "1-0", "9" * 40, "-5", "²"])
async def test_an_id_that_is_not_ours_is_a_gap_and_never_a_silent_restart(foreign: str) -> None:
    feed = RunFeed(RUN)
    feed.publish("values", 1)
    items = await collected(closed(feed), foreign)
    assert [item.event for item in items] == ["gap", "values"]
    assert items[0].data["missing_after"] == foreign


@pytest.mark.req("RUN-8")
async def test_a_subscriber_that_lags_behind_is_told() -> None:
    feed = RunFeed(RUN, kept_items=2)
    feed.publish("values", 0)
    reading = feed.read(modes=ALL, last_event_id=None)
    assert (await anext(reading)).data == 0
    for number in range(1, 6):
        feed.publish("values", number)
    closed(feed)
    assert [(item.event, item.id) async for item in reading] == [
        ("gap", None),
        ("values", "5"),
        ("values", "6"),
    ]


async def test_subscribers_take_their_modes_and_all_get_what_concerns_the_run() -> None:
    feed = RunFeed(RUN)
    feed.publish("metadata", 0)
    feed.publish("values", 1, mode="values")
    feed.publish("messages", 2, mode="messages-tuple")
    feed.publish("end", 3)
    closed(feed)
    taken = await collected(feed, modes=frozenset({"messages-tuple"}))
    assert [item.data for item in taken] == [0, 2, 3]


async def test_a_waiting_subscriber_is_woken_by_each_item_and_by_the_end() -> None:
    feed = RunFeed(RUN)
    reading = asyncio.create_task(collected(feed))
    for number in range(3):
        await asyncio.sleep(0)
        feed.publish("values", number)
    await asyncio.sleep(0)
    closed(feed)
    assert [item.data for item in await asyncio.wait_for(reading, 5)] == [0, 1, 2]


async def test_ended_feeds_are_forgotten_with_time_and_running_ones_are_not() -> None:
    clock = FakeClock()
    feeds = Feeds(clock)
    running = feeds.open(RUN)
    for number in range(300):
        feed = feeds.open(_run(str(number)))
        feed.close(RunResult(RUN, None), at=clock.monotonic())
    assert feeds.get("0") is None
    assert feeds.get("299") is not None
    clock.move(3_600)
    feeds.open(_run("last"))
    assert feeds.get("299") is None
    assert feeds.get("r1") is running


def _run(run_id: str) -> RunRecord:
    from dataclasses import replace

    return replace(RUN, run_id=run_id)


@pytest.mark.req("RUN-5", "RUN-4")
async def test_events_are_named_as_the_platform_names_them_and_redacted(make_service: Any) -> None:
    class Talkative(ScriptedAssistant):
        async def stream(self, run: RunContext, input: Any) -> Any:  # noqa: A002
            yield AssistantEvent("messages-tuple", [{"content": "x"}, {"auth_token": "S", "n": 1}])
            yield AssistantEvent("messages", [{"content": "x"}], (), "partial")
            yield AssistantEvent("updates", {"inner": {}}, ("sub:1", "deep:2"))
            yield AssistantEvent("custom", {"progress": 1})

    service = await make_service(assistants={"echo": Talkative()})
    await service.threads.create(ALICE, thread_id="t1")
    run = await service.create(request())
    items = [item async for item in service.stream(ALICE, "t1", run.run_id)]
    assert [item.event for item in items] == [
        "metadata",
        "messages",
        "messages/partial",
        "updates|sub:1|deep:2",
        "custom",
        "end",
    ]
    assert items[1].data == [{"content": "x"}, {"n": 1}]
    assert items[0].data["run_id"] == run.run_id
    [custom] = await service.events(ALICE, "t1", event_types=["custom"])
    assert custom.payload == {"progress": 1}


@pytest.mark.req("RUN-8")
async def test_a_finished_run_whose_stream_is_gone_still_tells_how_it_ended(make_service: Any) -> None:
    service = await make_service()
    await service.threads.create(ALICE, thread_id="t1")
    run = await service.create(request(input=3))
    await service.join(ALICE, "t1", run.run_id)
    service._feeds.drop(run.run_id)
    items = [item async for item in service.stream(ALICE, "t1", run.run_id, last_event_id="1")]
    assert [item.event for item in items] == ["metadata", "gap", "values", "end"]
    assert items[2].data == {"input": 3, "output": None}
