"""The API server's audit log, read."""

import json
from pathlib import Path
from typing import Any

import yaml

from localcluster import audit_log
from localcluster.components import API_SERVER


def stage(number: int, name: str, **more: Any) -> str:
    return json.dumps(
        {
            "auditID": f"id-{number}",
            "stage": name,
            "verb": "create",
            "user": {"username": "me", "extra": {"authentication.kubernetes.io/credential-id": ["JTI=1"]}},
            "objectRef": {"resource": "pods", "subresource": "eviction", "namespace": "shop", "name": "web"},
            "requestReceivedTimestamp": f"2026-11-19T02:00:0{number}.000000Z",
            "stageTimestamp": f"2026-11-19T02:00:0{number}.500000Z",
            **more,
        }
    )


def test_each_request_is_one_call_and_an_unanswered_one_has_no_code(tmp_path: Path) -> None:
    assert audit_log.read_log(tmp_path) == []
    over = {"responseStatus": {"code": 201}, "requestObject": {"deleteOptions": {}}}
    lines = [
        stage(2, "RequestReceived"),
        stage(1, "RequestReceived"),
        stage(1, "ResponseComplete", **over),
        stage(3, "ResponseComplete")[:50],
    ]
    (tmp_path / "audit.log").write_text("\n".join(lines))
    first, second = audit_log.read_log(tmp_path)
    assert (first.user, first.credential, first.verb) == ("me", "JTI=1", "create")
    assert (first.resource, first.namespace, first.name) == ("pods/eviction", "shop", "web")
    assert (first.code, first.body) == (201, {"deleteOptions": {}})
    assert first.answered == first.received + 0.5
    assert (second.code, second.answered, second.received - first.received) == (None, None, 1.0)


def test_only_requests_of_these_users_are_logged(tmp_path: Path) -> None:
    flags = audit_log.write_audit_flags(tmp_path, ["me"])
    assert list(flags) == [API_SERVER]
    (policy,) = (file for file in tmp_path.iterdir() if str(file) in flags[API_SERVER][0])
    *rules, last = yaml.safe_load(policy.read_text())["rules"]
    assert all(rule["users"] == ["me"] for rule in rules)
    assert last == {"level": "None"}


def test_what_was_stored_is_logged_on_request_and_read_from_rotated_files_too(tmp_path: Path) -> None:
    plain, *_ = yaml.safe_load(_policy_of(tmp_path, memory=False))["rules"]
    assert plain["level"] == "Request"
    writes, *_ = yaml.safe_load(_policy_of(tmp_path, memory=True))["rules"]
    assert (writes["level"], writes["users"]) == ("RequestResponse", ["me"])
    assert "moveledgers/status" in writes["resources"][1]["resources"]
    stored = {"responseStatus": {"code": 200}, "responseObject": {"metadata": {"resourceVersion": "7"}}}
    (tmp_path / "audit-2026-11-19T02-00-00.000.log").write_text(stage(1, "ResponseComplete", **stored))
    (tmp_path / "audit.log").write_text(stage(2, "ResponseComplete", responseStatus={"code": 404}))
    first, second = audit_log.read_log(tmp_path)
    assert first.stored == {"metadata": {"resourceVersion": "7"}}
    assert (second.code, second.stored) == (404, {})


def _policy_of(folder: Path, *, memory: bool) -> str:
    flags = audit_log.write_audit_flags(folder, ["me"], memory=memory)
    (file,) = (file for file in folder.iterdir() if str(file) in flags[API_SERVER][0])
    return file.read_text()


def test_requests_of_named_resources_are_logged_with_their_body(tmp_path: Path) -> None:
    histories = {"group": "reberth.dev", "resources": ["evictionhistories/status"]}
    audit_log.write_audit_flags(tmp_path, ["me"], bodies=[histories])
    (policy,) = tmp_path.iterdir()
    first, *_ = yaml.safe_load(policy.read_text())["rules"]
    assert first["level"] == "Request"
    assert first["resources"][-1] == histories
