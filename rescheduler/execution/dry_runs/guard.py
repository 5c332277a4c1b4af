"""Whether the API server lets this account create pods as a dry run only; nothing is asked before.

RBAC cannot allow a dry run alone. So the right to create pods is given together with an admission policy,
`manifests/rescheduler/dry-runs`, and it is not used unless policy and binding are exactly these.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from reberth.client.api import Api
from reberth.cluster.kinds import Resource, plain_kind
from reberth.forecast.replacement.refusals import cannot_forecast
from reberth.records import ObjectMeta, Record
from reberth.values import errors
from reberth.values.errors import ApiError
from reberth.values.refusal import Refused

NAME = "reberth-rescheduler-dry-runs"
ACCOUNT = "system:serviceaccount:reberth-system:reberth-rescheduler"
POLICY: Mapping[str, Any] = {
    "failurePolicy": "Fail",
    "matchConstraints": {
        "matchPolicy": "Equivalent",
        "namespaceSelector": {},
        "objectSelector": {},
        "resourceRules": [
            {
                "apiGroups": [""],
                "apiVersions": ["v1"],
                "operations": ["CREATE"],
                "resources": ["pods"],
                "scope": "*",
            }
        ],
    },
    "matchConditions": [
        {"name": "is-the-rescheduler", "expression": f"request.userInfo.username == '{ACCOUNT}'"}
    ],
    "validations": [
        {
            "expression": "request.dryRun",
            "reason": "Forbidden",
            "message": "the rescheduler creates pods only as a dry run",
        }
    ],
}
BINDING: Mapping[str, Any] = {"policyName": NAME, "validationActions": ["Deny"]}
_GROUP = "admissionregistration.k8s.io"
_READ_AGAIN = 60.0


class _Guard(Record, frozen=True):
    metadata: ObjectMeta
    spec: dict[str, Any] = msgspec.field(default_factory=dict)


class _User(Record, frozen=True):
    username: str = ""


class _ReviewStatus(Record, frozen=True):
    user_info: _User = _User()


class _SelfReview(Record, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    status: _ReviewStatus | None = None


_POLICIES = Resource(
    plain_kind("ValidatingAdmissionPolicy", _Guard, _GROUP), "validatingadmissionpolicies", namespaced=False
)
_BINDINGS = Resource(
    plain_kind("ValidatingAdmissionPolicyBinding", _Guard, _GROUP),
    "validatingadmissionpolicybindings",
    namespaced=False,
)
_REVIEWS = Resource(
    plain_kind("SelfSubjectReview", _SelfReview, "authentication.k8s.io"),
    "selfsubjectreviews",
    namespaced=False,
)


class DryRunGuard:
    """Reads the guard once a minute, when it is asked for."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._lock = asyncio.Lock()
        self._trouble: str | None = "not read yet"
        self._read_at = float("-inf")

    async def find_trouble(self) -> str | Refused | None:
        """Tell why no dry run may be asked for, or refuse a move: it cannot be told now.

        An error that passes switches nothing off; the next move asks again.
        """
        async with self._lock:
            now = asyncio.get_running_loop().time()
            if now - self._read_at < _READ_AGAIN:
                return self._trouble
            try:
                self._trouble = await self._find_trouble()
            except ApiError as error:
                return cannot_forecast(f"the guard of dry runs cannot be read: {error}")
            self._read_at = now
            return self._trouble

    async def _find_trouble(self) -> str | None:
        try:
            policy = await self._api.get(_POLICIES, NAME)
            binding = await self._api.get(_BINDINGS, NAME)
            review = await self._api.create(_REVIEWS, _SelfReview())
        except (errors.NotFound, errors.Forbidden) as error:
            return f"the guard of dry runs cannot be read: {error}"
        account = review.status.user_info.username if review.status else ""
        if account != ACCOUNT:
            return f"the guard of dry runs is not about {account or 'this account'}"
        is_ours = policy.spec == POLICY and binding.spec == BINDING
        return None if is_ours else f"the admission policy {NAME} or its binding was changed"
