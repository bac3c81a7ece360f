"""Runs the hooks of a container. An answer to a hook by HTTP may be any, as with a kubelet: only that there is one counts."""

from __future__ import annotations

import asyncio

from drayman.node.agent.handlers import Handler
from drayman.node.agent.probes.answers import Asked, PortError
from drayman.node.agent.probes.asking_http import RequestError, get
from drayman.node.agent.processes.executing import run_inside


async def run_hook(asked: Asked, hook: Handler) -> str:
    """Returns when the hook has; why it has failed, or nothing."""
    if hook.exec_ is not None:
        result = await run_inside(asked.attempt, hook.exec_.command)
        return f"exit code {result.code}: {result.text}".rstrip(": ") if result.code else ""
    if hook.http_get is not None:
        try:
            await get(asked, hook.http_get)
        except (PortError, RequestError) as error:
            return str(error)
        return ""
    if hook.sleep is not None:
        await asyncio.sleep(hook.sleep.seconds)
        return ""
    return "it has none of exec, httpGet and sleep"
