"""The table of docs/other-projects.md: what is known of kinds of other projects, in words."""

from collections.abc import Iterable, Sequence

from generating.marked_table import put_table, write_table
from reberth.other_projects.rules import Check
from reberth.other_projects.table import KindRollout, OtherKind

_HEAD = ("kind", "Healthy if", "is divided by", "its pods", "a rollout is in progress")


def put_kinds(page: str, kinds: Iterable[OtherKind]) -> str:
    """Put the table between its marks. Raises ValueError if they are missing."""
    return put_table(page, "reberth/other_projects/kinds.yaml", write_table(_HEAD, map(_describe, kinds)))


def _describe(kind: OtherKind) -> tuple[str, ...]:
    return (
        f"[{kind.kind}]({kind.documentation})",
        _all(kind.healthy) or "its status does not tell: always Healthy, and no failover",
        f"`{kind.replicas}`" if kind.replicas else "",
        ", ".join(
            [*(f"`{each}`" for each in kind.templates), *(["replaced one by one"] * kind.replaces_pods)]
        ),
        _describe_rollout(kind.rollout) if kind.rollout else "",
    )


def _describe_rollout(rollout: KindRollout) -> str:
    return (
        f"{_all(rollout.begun)}; it may leave out `{rollout.max_unavailable}`"
        f" ({rollout.default} if not set) of `{rollout.wanted}` by `{rollout.available}`"
    )


def _all(checks: Sequence[Check]) -> str:
    said = [_write(each) for each in checks]
    both = [f"({text})" if each.any else text for each, text in zip(checks, said, strict=True)]
    return ", and ".join(both if len(both) > 1 else said)


def _write(check: Check) -> str:
    if check.any:
        return ", or ".join(map(_write, check.any))
    if check.all:
        return " with ".join(map(_write, check.all))
    if check.not_:
        return f"not ({_all(check.not_)})"
    if check.current:
        return f"`{check.current}` is the newest generation"
    return _write_comparison(check)


def _write_comparison(check: Check) -> str:
    what = f"condition `{check.condition}`" if check.condition else f"`{check.at}`"
    if check.at_least:
        other = check.at_least if check.at_least.isdecimal() else f"`{check.at_least}`"
        return f"{what} ≥ {other}"
    if check.differs_from:
        return f"{what} is not `{check.differs_from}`"
    return f"{what} is {_list(check.is_in)}" if check.is_in else f"{what} is not {_list(check.not_in)}"


def _list(values: Iterable[str | bool | None]) -> str:
    words: dict[object, str] = {None: "missing", True: "true", False: "false"}
    return " or ".join(words.get(each, str(each)) for each in values)
