"""Requests of other users, groups and service accounts to a real API server, authorized as theirs."""

from collections.abc import Sequence

from multidict import CIMultiDict

from localcluster.client import Client
from localcluster.components import Design

AUTHENTICATED = "system:authenticated"
_ACCOUNT = "system:serviceaccount:"


class Impersonator(Client):
    """The administrator in the name of somebody else, with the groups that the API server gives him."""

    def __init__(self, design: Design, user: str, groups: Sequence[str] = ()) -> None:
        super().__init__(design)
        headers = CIMultiDict(self._headers)
        headers.add("Impersonate-User", user)
        for group in (*groups, *_list_groups(user), AUTHENTICATED):
            headers.add("Impersonate-Group", group)
        self._headers = headers  # type: ignore[assignment] # a header may stand there several times


def _list_groups(user: str) -> list[str]:
    """List the groups that every service account is in."""
    if not user.startswith(_ACCOUNT):
        return []
    namespace = user.removeprefix(_ACCOUNT).partition(":")[0]
    return ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
