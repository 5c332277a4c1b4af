import json

import msgspec
import pytest

from federation.objects.template import ResourceTemplate, ResourceTemplateReader, read_parts, read_template
from reberth.protocol.response import BadObject, WatchEvent
from reberth.values.errors import Unreadable

WIRE = {
    "apiVersion": "example.com/v1",
    "kind": "Berth",
    "metadata": {"name": "a", "namespace": "quay", "resourceVersion": "3"},
    "spec": {"length": 40},
    "tides": [1, 2],
    "status": {"free": True},
}


def test_a_template_keeps_all_its_parts_for_any_kind() -> None:
    template = read_template(json.dumps(WIRE).encode())
    assert (template.api_version, template.kind, template.metadata.name) == ("example.com/v1", "Berth", "a")
    assert read_parts(template) == {"spec": {"length": 40}, "tides": [1, 2]}
    assert template.part("status") == {"free": True}
    assert template.part("data") is None


def test_objects_pages_and_lines_are_read_alike() -> None:
    reader = ResourceTemplateReader()
    whole = json.dumps(WIRE).encode()
    assert reader.read("get", whole) == read_template(whole)
    page = reader.read_page("list", json.dumps({"items": [WIRE, {"metadata": 3}]}).encode())
    assert page.objects == [read_template(whole)]
    assert [type(each) for each in page.found] == [ResourceTemplate, BadObject]
    line = reader.read_line("watch", json.dumps({"type": "ADDED", "object": WIRE}).encode())
    assert line == WatchEvent("ADDED", read_template(whole))


def test_an_unreadable_template_is_named_and_others_are_still_read() -> None:
    reader = ResourceTemplateReader()
    line = json.dumps({"type": "ADDED", "object": {"metadata": {"name": "odd", "labels": 3}}}).encode()
    assert isinstance(reader.read_line("watch", line), BadObject)
    with pytest.raises(Unreadable):
        reader.read("get", b"no json")
    with pytest.raises(msgspec.MsgspecError):
        read_template(b"[]")
