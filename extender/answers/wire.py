"""kube-scheduler's extender API, version 1: the arguments of its calls, read from bytes.

Only the fields that the answer depends on are decoded; of the pod, its metadata. Unknown fields are ignored,
because a later scheduler may add some. A call that cannot be read is refused with the field at fault.
"""

from functools import lru_cache
from typing import TypeVar

import msgspec

from reberth.records import ObjectMeta, Record

T = TypeVar("T")
_NULL_TEXT = b"null"
_NULL = msgspec.Raw(_NULL_TEXT)

NOT_CAPABLE = "nodeCacheCapable: true is required: this extender reads node names, not whole nodes"


class UnreadableCall(ValueError):
    """The call cannot be read; the message gives the reason."""


class AskedPod(Record, frozen=True):
    """A pod, with its metadata only."""

    metadata: ObjectMeta


class ExtenderArgs(msgspec.Struct, frozen=True):
    """A pod and nodes, in the scheduler's order (`ExtenderArgs`). Do not change the list."""

    pod: ObjectMeta
    nodes: list[str]
    text: bytes
    """The list of nodes as it came."""


class ExtenderPreemptionArgs(msgspec.Struct, frozen=True):
    """A pod, and the uids of its victims on each candidate node; the entries are kept byte for byte."""

    pod: ObjectMeta
    victims: dict[str, tuple[str, ...]]
    entries: dict[str, msgspec.Raw]


class _Arguments(msgspec.Struct, frozen=True, rename="pascal"):
    pod: AskedPod
    nodes: msgspec.Raw = _NULL
    node_names: msgspec.Raw = _NULL


class _PreemptArguments(msgspec.Struct, frozen=True, rename="pascal"):
    pod: AskedPod
    node_name_to_victims: msgspec.Raw = _NULL
    node_name_to_meta_victims: dict[str, msgspec.Raw] | None = None


class _Victim(msgspec.Struct, frozen=True):
    uid: str = msgspec.field(name="UID")


class _Victims(msgspec.Struct, frozen=True):
    pods: tuple[_Victim, ...] | None = msgspec.field(name="Pods", default=None)
    violations: int = msgspec.field(name="NumPDBViolations", default=0)


_names = msgspec.json.Decoder(list[str])
_arguments = msgspec.json.Decoder(_Arguments)
_preempt_arguments = msgspec.json.Decoder(_PreemptArguments)
_victims = msgspec.json.Decoder(_Victims)
_pod = msgspec.json.Decoder(AskedPod)


@lru_cache(maxsize=2)
def read_args(body: bytes) -> ExtenderArgs:
    """Read the arguments of filter and prioritize. Raises Unreadable.

    If nothing is refused, filter and both prioritize calls of one scheduling cycle carry the same bytes.
    """
    asked = _read(_arguments, body)
    names = bytes(asked.node_names)
    if names == _NULL_TEXT:
        raise UnreadableCall("NodeNames is missing" if _is_null(asked.nodes) else NOT_CAPABLE)
    return ExtenderArgs(asked.pod.metadata, _read_names(names), names)


def _read_names(text: bytes) -> list[str]:
    try:
        return _names.decode(text)
    except ValueError as error:
        raise UnreadableCall(f"NodeNames: {error}") from None


def read_preemption_args(body: bytes) -> ExtenderPreemptionArgs:
    """Read the arguments of preempt. Raises Unreadable."""
    asked = _read(_preempt_arguments, body)
    entries = asked.node_name_to_meta_victims
    if entries is None:
        missing = "NodeNameToMetaVictims is missing"
        raise UnreadableCall(missing if _is_null(asked.node_name_to_victims) else NOT_CAPABLE)
    victims = {node: _read_victims(entry) for node, entry in entries.items()}
    return ExtenderPreemptionArgs(asked.pod.metadata, victims, entries)


def read_pod(body: bytes) -> ObjectMeta:
    """Read a pod from the output of `kubectl get -o json`. Raises Unreadable."""
    return _read(_pod, body).metadata


def pass_all(asked: ExtenderArgs) -> bytes:
    """Write the response of filter when all nodes pass."""
    return b'{"NodeNames":%b,"FailedNodes":{},"FailedAndUnresolvableNodes":{},"Error":""}' % asked.text


def write_filter(passed: list[str], refused: dict[str, str]) -> bytes:
    """Write the response of filter: the nodes that pass, and why the others never will."""
    return msgspec.json.encode(
        {"NodeNames": passed, "FailedNodes": {}, "FailedAndUnresolvableNodes": refused, "Error": ""}
    )


def write_preempt(entries: dict[str, msgspec.Raw]) -> bytes:
    """Write the response of preempt; the remaining entries are unchanged."""
    return msgspec.json.encode({"NodeNameToMetaVictims": entries})


def _read(decoder: "msgspec.json.Decoder[T]", body: bytes | msgspec.Raw) -> T:
    try:
        return decoder.decode(body)
    except RecursionError:
        raise UnreadableCall("the JSON is nested too deeply") from None
    except ValueError as error:
        raise UnreadableCall(str(error) or "not JSON") from None


def _read_victims(entry: msgspec.Raw) -> tuple[str, ...]:
    """Give the uids of the victims; later schedulers also send candidates without any."""
    return tuple([victim.uid for victim in _read(_victims, entry).pods or ()])


def _is_null(raw: msgspec.Raw) -> bool:
    return bytes(raw) == _NULL_TEXT
