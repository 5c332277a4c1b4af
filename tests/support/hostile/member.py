"""A member whose API server answers whatever its admin wants."""

from collections.abc import Mapping
from typing import Any

from federation.objects.template import Object, ResourceTemplate
from reberth.cluster.kinds import NODES, PODS, Resource
from reberth.protocol.response import failure
from reberth.values.errors import ServerFault
from tests.support.federation.stored_hub import APIS
from tests.support.federation.stored_members import StoredMember
from tests.support.hostile.dice import HostileDice
from tests.support.hostile.json_junk import junk, status, write
from tests.support.hostile.pods import make_pod
from tests.support.hostile.tenant import HostileTenant

_REFUSAL = 0.2
_CODES = (400, 401, 403, 404, 409, 413, 422, 429, 500, 503, 599)


class HostileMember(StoredMember):
    def __init__(self, name: str, seed: int, *, objects: int) -> None:
        super().__init__(name)
        self._dice = HostileDice(seed)
        self._is_odd = seed % 3 == 0  # otherwise its kinds are read, and workloads go there
        for number in range(objects):
            if number % 3:
                self.feed(PODS, make_pod(self._dice))
            else:
                self.feed(NODES, HostileTenant(seed + number).node())

    async def apply_object(
        self, resource: Resource[Any], name: str, body: Object, *, namespace: str = "", **more: Any
    ) -> ResourceTemplate:
        if self._dice.random.random() < _REFUSAL:
            said = {"message": self._dice.text(), "reason": junk(self._dice), "details": junk(self._dice)}
            text = self._dice.pick((write(said), b"\xff" * 1_000, b""))
            wait = self._dice.pick((None, "9" * 9))
            raise failure("patch", self._dice.pick(_CODES), text, retry_after=wait)
        return await super().apply_object(resource, name, body, namespace=namespace, **more)

    async def probe(self, *, within: float) -> None:
        await super().probe(within=within)
        if self._dice.random.random() < _REFUSAL:
            raise ServerFault("get", self._dice.text())

    async def read_path(self, path: str, *, subject: str) -> Mapping[str, Any]:
        """Answer with an object: of anything else the client says that it cannot be read."""
        assert subject
        good = APIS.get(path, APIS["/api/v1"])
        if not self._is_odd:
            return good
        odd = {self._dice.pick(("groups", "resources", "gitVersion")): self._odd_list()}
        found: Mapping[str, Any] = self._dice.pick((good, good, odd, {}))
        return found

    def answer(self, whole: Object) -> bytes:
        told = {**whole, "status": status(self._dice)}
        odd = {"spec": junk(self._dice), "metadata": {**whole["metadata"], "generation": self._odd_number()}}
        return write(self._dice.pick((told, told, told, {**told, **odd})))

    def _odd_list(self) -> Any:
        names = [{"name": self._dice.text()[:300], "kind": "Deployment", "namespaced": True}] * 100
        versions = [{"versions": [{"groupVersion": self._dice.text()[:500]}, junk(self._dice)]}]
        return self._dice.pick((names, versions, junk(self._dice), [junk(self._dice)] * 50))

    def _odd_number(self) -> int:
        found: int = self._dice.pick((0, 1, 2, -1, 2**63 - 1))
        return found
