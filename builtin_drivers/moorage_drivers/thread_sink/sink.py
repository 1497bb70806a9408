"""A notification as a run on the task's thread, once (NOTE-2, NOTE-3, NOTE-6)."""

from moorage.contract import (
    AdmissionRejected,
    Conflict,
    DeliveryOutcome,
    DeliveryState,
    GatewayContext,
    LaunchedRun,
    NotFound,
    Notification,
    Principal,
    RunLauncher,
    RunRequest,
    RunStatus,
    ThreadBusy,
)
from moorage.tasks.prompt import render_notification

DEFAULT_ASSISTANT = "direct"
PENDING_RETRY_SECONDS = 1.0
BUSY_RETRY_SECONDS = 5.0


class ThreadSink:
    """Launches a run under the delivery id, or finds the run that has it, and tells how that run is doing.

    The message keeps one id through all attempts at one event, so that a thread shows the event once even
    where a first run was cut short.
    """

    def __init__(self, context: GatewayContext) -> None:
        self._context = context

    async def deliver(self, notification: Notification) -> DeliveryOutcome:
        if notification.thread_id is None:
            return DeliveryOutcome(DeliveryState.GONE, "the task has no thread")
        store = self._context.durable_store()
        thread = await store.threads.get(notification.thread_id)
        if thread is None or thread.user_id != notification.user_id:
            return DeliveryOutcome(DeliveryState.GONE, "the thread does not exist or is somebody else's")
        roles = await store.keys.roles_of(notification.user_id)
        request = _request(notification, notification.thread_id, Principal(notification.user_id, roles))
        try:
            launched = await self._context.service(RunLauncher).launch(request)
        except ThreadBusy:
            return DeliveryOutcome(
                DeliveryState.BUSY, "the thread has an active run", retry_after_seconds=BUSY_RETRY_SECONDS
            )
        except NotFound as error:
            # The thread may have gone in the meantime; an assistant that is missing may come back.
            if await store.threads.get(notification.thread_id) is None:
                return DeliveryOutcome(DeliveryState.GONE, "the thread was deleted")
            return DeliveryOutcome(DeliveryState.FAILED, str(error))
        except (AdmissionRejected, Conflict) as error:
            return DeliveryOutcome(DeliveryState.FAILED, f"the run was refused: {error}")
        return _outcome(launched)


def _request(notification: Notification, thread_id: str, owner: Principal) -> RunRequest:
    marks = {
        "moorage_task_id": notification.task_id,
        "moorage_task_version": notification.version,
        "moorage_task_attempt": notification.attempt,
    }
    message = {
        "type": "human",
        "id": f"moorage-{notification.task_id}-{notification.version}",
        "content": render_notification(notification),
        "additional_kwargs": {"moorage_internal": True, **marks},
    }
    return RunRequest(
        thread_id=thread_id,
        assistant_id=notification.assistant_id or DEFAULT_ASSISTANT,
        principal=owner,
        input={"messages": [message]},
        metadata={**marks, "moorage_delivery_id": notification.delivery_id},
        origin="internal",
        idempotency_key=notification.delivery_id,
    )


def _outcome(run: LaunchedRun) -> DeliveryOutcome:
    if not run.status.terminal:
        return DeliveryOutcome(
            DeliveryState.PENDING,
            f"run {run.run_id} is {run.status.value}",
            retry_after_seconds=PENDING_RETRY_SECONDS,
        )
    if run.status is RunStatus.SUCCESS:
        return DeliveryOutcome(DeliveryState.DELIVERED)
    return DeliveryOutcome(
        DeliveryState.FAILED,
        f"run {run.run_id} ended as {run.status.value}: {run.error or 'no reason known'}",
    )
