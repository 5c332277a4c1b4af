"""A custom kind of a test, Game, and the operator that runs its objects in the members as pods."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from typing import Any

from localcluster.client import Client, Refused
from tests.live.support.hub_and_members import deployment
from tests.live.support.hub_paths import DEPLOYMENTS
from tests.support.builders import Object

KIND = {"apiVersion": "example.com/v1", "kind": "Game"}
GAMES = "/apis/example.com/v1/namespaces/default/games"
_LOOK_EVERY = 0.1
_PASSING = (404, 409)
"""Between two requests an object was created, changed or removed: the next look sees it."""


class GameOperator:
    """Keeps a Deployment for each Game of some members, and tells in its status of the pods."""

    def __init__(self, members: Mapping[str, Client]) -> None:
        self._members = members
        self.stalled: set[str] = set()
        """Members in which games are said to be Stalled, though their pods run."""

    @contextlib.asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(self._work(name)) for name in self._members]
        try:
            yield
        finally:
            for task in tasks:
                assert not task.done(), task
                task.cancel()
            await asyncio.wait(tasks)

    async def _work(self, member: str) -> None:
        while True:
            try:
                await self._look(member)
            except Refused as refused:
                if refused.status not in _PASSING:
                    raise
            await asyncio.sleep(_LOOK_EVERY)

    async def _look(self, member: str) -> None:
        client = self._members[member]
        games = {each["metadata"]["name"]: each for each in (await client.get(GAMES))["items"]}
        runs = {each["metadata"]["name"]: each for each in (await client.get(DEPLOYMENTS))["items"]}
        for name in runs.keys() - games.keys():
            await client.delete(f"{DEPLOYMENTS}/{name}")
        for name, game in games.items():
            await self._keep(member, game, runs.get(name))

    async def _keep(self, member: str, game: Object, run: Object | None) -> None:
        client, name, wanted = self._members[member], game["metadata"]["name"], game["spec"]["replicas"]
        if run is None:
            await client.create(DEPLOYMENTS, deployment(name, wanted, grace=1))
        elif run["spec"]["replicas"] != wanted:
            await client.patch(f"{DEPLOYMENTS}/{name}", {"spec": {"replicas": wanted}})
        elif (status := self._sum_up(member, game, run)) != game.get("status"):
            await client.patch(f"{GAMES}/{name}/status", {"status": status})

    def _sum_up(self, member: str, game: Object, run: Object) -> Object:
        phase = "Stalled" if member in self.stalled else "Running"
        ready = run.get("status", {}).get("readyReplicas", 0)
        generation = game["metadata"]["generation"]
        return {"observedGeneration": generation, "phase": phase, "readyReplicas": ready}


def game(name: str, replicas: int) -> Object:
    """A Game whose pods need what those of its Deployment need."""
    template: Any = deployment(name, replicas)["spec"]["template"]
    return {**KIND, "metadata": {"name": name}, "spec": {"replicas": replicas, "template": template}}
