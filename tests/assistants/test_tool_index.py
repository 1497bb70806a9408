"""Which tools words find: searches, and keywords in a user's message (ROUTE-4, C55)."""

from typing import Any

import pytest

from moorage.contract import ROUTING_METADATA, GatewayTool, RoutingHint
from moorage_drivers.assistants.tool_index import ToolIndex, identity


def tool(name: str, description: str = "", *, server: str = "s", hint: Any = None) -> GatewayTool:
    metadata = {ROUTING_METADATA: hint.as_metadata()} if hint is not None else {}
    return GatewayTool(f"{server}_{name}", name, server, description, {}, native=object(), metadata=metadata)


def prefer(*keywords: str, priority: int = 0) -> RoutingHint:
    return RoutingHint("prefer", priority, keywords)


@pytest.mark.req("ROUTE-4", "C55")
@pytest.mark.parametrize(
    ("keyword", "text", "meant"),
    [
        ("SQL", "run this sql query", True),
        ("sql", "SQL?", True),
        ("sql", "mysqldump", False),
        ("a", "an apple", False),
        ("a", "vitamin A please", True),
        ("pull request", "open a Pull  Request", False),
        ("pull request", "my pull request.", True),
        ("数据库", "请查询数据库中的表", True),
        ("c++", "write C++ code", True),
        ("straße", "Die STRASSE", True),
        ("", "anything", False),
        (" ", "any thing", False),
        ("x" * 5_000, "x" * 6_000, False),
    ],
)
def test_a_keyword_counts_as_a_whole_word(keyword: str, text: str, meant: bool) -> None:
    index = ToolIndex([tool("t", hint=prefer(keyword))])
    assert bool(index.for_message(text, 3)) is meant


@pytest.mark.req("ROUTE-4")
def test_keywords_promote_by_priority_then_name_and_no_more_than_allowed() -> None:
    index = ToolIndex(
        [
            tool("b", hint=prefer("sql")),
            tool("a", hint=prefer("sql")),
            tool("c", hint=prefer("sql", priority=9)),
            tool("d", hint=prefer("sql")),
            tool("top", hint=prefer("mail", priority=99)),
            tool("off", hint=RoutingHint("off", 100, ("sql",))),
        ]
    )
    assert [one.raw_name for one in index.for_message("some SQL", 3)] == ["c", "a", "b"]
    assert [one.raw_name for one in index.for_message("some SQL", 1)] == ["c"]
    assert index.for_message("some SQL", 0) == []


@pytest.mark.req("ROUTE-4")
def test_a_search_finds_by_name_topic_and_description_the_rare_words_first() -> None:
    crowd = [tool(f"list_items_{n}", "List the items of a collection.") for n in range(100)]
    index = ToolIndex(
        [
            *crowd,
            tool("createIssue", "Open a ticket in the tracker."),
            tool("ship", "Sends a parcel.", hint=prefer("delivery")),
            tool("数据库查询", "在数据库中查询"),
        ]
    )

    def best(query: str) -> str:
        return index.search(query, 5)[0].raw_name

    assert best("list the issue") == "createIssue"
    assert best("please create issues") == "createIssue"
    assert best("s_list_items_77") == "list_items_77"
    assert best("delivery") == "ship"
    assert best("查询") == "数据库查询"
    assert len(index.search("list items", 5)) == 5
    assert index.search("quantum", 5) == []
    assert index.search("", 5) == []


@pytest.mark.req("ROUTE-4", "TOOL-3")
def test_another_tool_of_the_same_name_is_another_tool() -> None:
    mine, other = tool("x", server="a_b"), tool("b_x", server="a")
    assert mine.name == other.name
    assert identity(mine) != identity(other)
