"""Work that runs beside a test, in loop time."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest


def run_threads_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loop time does not wait for threads, so what is given to one is done at once."""

    async def do(work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)

    monkeypatch.setattr(asyncio, "to_thread", do)


@asynccontextmanager
async def running(work: Awaitable[Any]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(work)
    yield
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
