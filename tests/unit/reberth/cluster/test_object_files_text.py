import json

import pytest

from reberth.cluster.object_files import TextError, list_documents

BOMB = b"a0: &a0 [x, x]\n" + b"".join(
    b"a%d: &a%d [*a%d, *a%d, *a%d, *a%d]\n" % (place, place, *[place - 1] * 4) for place in range(1, 30)
)


def read(text: str) -> list[object]:
    return [json.loads(bytes(document)) for document in list_documents(text.encode())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', [{"a": 1}]),
        (' \n[{"a": 1}]\n', [{"a": 1}]),
        ('{"a": 1}{"b": 2}', [{"a": 1}, {"b": 2}]),
        ('{"a": 1}\n\n{"b": [\n2]}\n', [{"a": 1}, {"b": [2]}]),
        ("a: 1\nb: [x, y]", [{"a": 1, "b": ["x", "y"]}]),
        ("a: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("# nothing\n---\n", []),
        ("", []),
        ("- a: 1\n- b: 2\n", [{"a": 1}, {"b": 2}]),
        ("a: &x {b: 1}\nc: *x\n", [{"a": {"b": 1}, "c": {"b": 1}}]),
        ("at: 2026-11-18T09:15:31Z", [{"at": "2026-11-18T09:15:31Z"}]),
    ],
)
def test_texts_hold_documents(text: str, expected: list[object]) -> None:
    assert read(text) == expected


def test_a_single_document_of_json_is_not_touched() -> None:
    text = b'{"a":   1.50}'
    assert [bytes(document) for document in list_documents(text)] == [text]


def test_decoded_values_are_documents_too() -> None:
    assert [json.loads(bytes(document)) for document in list_documents({"a": 1})] == [{"a": 1}]
    assert [json.loads(bytes(document)) for document in list_documents([{"a": 1}, {"b": 2}])] == [
        {"a": 1},
        {"b": 2},
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"a": }', r"Expecting value: line 1 column 7"),
        (b'{"a": 1} {"b": ', r"line 1 column 16"),
        (b"a: b: c", r"mapping values are not allowed in this context .* line 1"),
        (b"\xff\xfe\xff", r"codec|unacceptable"),
        (b'{"a": "\xff"} {}', r"codec can't decode byte"),
        (b"a: &x [*x]", r"nested too deeply"),
        (b"a: *x", r"undefined alias"),
        (BOMB, r"expands to more than 10000000 values"),
        (b"a: " + b"[" * 1000 + b"]" * 1000, r"nested too deeply"),
        (b"[" * 100_000, r"nested too deeply"),
        (b'{"a": ' * 100_000, r"nested too deeply"),
        (b"? [a, b]\n: 1", r"unhashable key"),
        (b"~: 1", r"cannot be written as JSON"),
        (b"a: 2026-13-45", r"month must be in"),
        (b"a: !!python/object:os.system x", r"could not determine a constructor"),
    ],
)
def test_an_unreadable_text_is_refused_with_the_reason(text: bytes, reason: str) -> None:
    with pytest.raises(TextError, match=reason):
        list(list_documents(text))
