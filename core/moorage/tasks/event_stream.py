"""The event-stream sink: attention events as rows of the thread's event log, which feeds SSE (NOTE-4)."""

from moorage.contract.sinks import DeliveryOutcome, DeliveryState, Notification
from moorage.contract.stores import EventRepository, ThreadRepository

EVENT_TYPE = "task.attention"


class EventStreamSink:
    """Appends one event per delivery; the log is durable, so clients of every replica see it.

    A repetition may append a second row: its metadata carries the ``delivery_id`` to tell.
    """

    def __init__(self, events: EventRepository, threads: ThreadRepository) -> None:
        self._events = events
        self._threads = threads

    async def deliver(self, notification: Notification) -> DeliveryOutcome:
        if notification.thread_id is None:
            return DeliveryOutcome(DeliveryState.GONE, "the task belongs to no thread")
        thread = await self._threads.get(notification.thread_id)
        if thread is None or thread.user_id != notification.user_id:
            # Thread ids are chosen by clients: one may have been made again by somebody else (NOTE-3).
            return DeliveryOutcome(DeliveryState.GONE, "the thread does not exist")
        if await self._known(notification):
            return DeliveryOutcome(DeliveryState.DELIVERED)
        row = await self._events.append(
            notification.thread_id,
            event_type=EVENT_TYPE,
            task_id=notification.task_id,
            metadata={
                "delivery_id": notification.delivery_id,
                "version": notification.version,
                "attempt": notification.attempt,
            },
            payload=_payload(notification),
        )
        if row is None:
            return DeliveryOutcome(DeliveryState.GONE, "the thread does not exist")
        return DeliveryOutcome(DeliveryState.DELIVERED)

    async def _known(self, notification: Notification) -> bool:
        rows = await self._events.list(
            notification.thread_id or "",
            event_types=(EVENT_TYPE,),
            task_id=notification.task_id,
            limit=1_000,
        )
        return any(row.metadata.get("delivery_id") == notification.delivery_id for row in rows)


def _payload(notification: Notification) -> dict[str, object]:
    return {
        "task_id": notification.task_id,
        "task_name": notification.task_name,
        "server_name": notification.server_name,
        "event": notification.kind.value,
        "status": notification.status.value,
        "error": notification.error,
        "result_preview": notification.result_preview,
        "result_truncated": notification.result_truncated,
        "result_artifact": notification.result_artifact,
        "input_required": notification.input_required,
    }
