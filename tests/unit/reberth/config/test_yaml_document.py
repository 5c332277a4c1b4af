import pytest
from hypothesis import given
from hypothesis import strategies as st

from reberth.config.yaml_document import joined, read_document


def value(content: str) -> object:
    document = read_document(content.encode())
    assert document.root is not None
    assert document.faults == []
    return document.root.value


def faults(content: str | bytes) -> list[str]:
    raw = content if isinstance(content, bytes) else content.encode()
    return [str(fault) for fault in read_document(raw).faults]


@pytest.mark.parametrize("text", ["off", "on", "yes", "no", "Yes", "12:30", "2026-01-01", "1_000", "=", "<<"])
def test_words_that_yaml_1_1_converts_stay_text(text: str) -> None:
    assert value(f"a: {text}") == {"a": text}


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("true", True),
        ("False", False),
        ("", None),
        ("~", None),
        ("null", None),
        ("0", 0),
        ("-7", -7),
        ("0755", 755),
        ("0o17", 15),
        ("0x1F", 31),
        ("1.5", 1.5),
        ("1e3", 1000.0),
        (".5", 0.5),
        ('"1"', "1"),
        ("!!str 5", "5"),
        ("!!int abc", "abc"),
        ("!!bool yes", "yes"),
    ],
)
def test_the_core_types_are_read(text: str, read: object) -> None:
    found = value(f"a: {text}")
    assert found == {"a": read}
    assert isinstance(found, dict)
    assert type(found["a"]) is type(read)


@pytest.mark.parametrize("text", [".nan", ".inf", "-.inf", "1e999", "9" * 65, "9" * 5000, "0x" + "f" * 5000])
def test_numbers_that_are_not_finite_stay_text(text: str) -> None:
    assert value(f"a: {text}") == {"a": text}


def test_a_key_is_the_text_it_is_written_as() -> None:
    assert value("off: 1\n2: b\nnull: c") == {"off": 1, "2": "b", "null": "c"}


def test_every_part_knows_the_line_of_its_key() -> None:
    root = read_document(b"a:\n  b: 1\n\n  c:\n  - 2\n").root
    assert root is not None
    assert isinstance(root.parts, dict)
    assert isinstance(root.parts["a"].parts, dict)
    assert {name: part.line for name, part in root.parts["a"].parts.items()} == {"b": 2, "c": 4}


def test_an_alias_repeats_its_anchor() -> None:
    assert value("a: &x {b: 1}\nc: *x") == {"a": {"b": 1}, "c": {"b": 1}}


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert value("\ufeffa: 1") == {"a": 1}


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "is empty"),
        ("# nothing but a comment\n", "is empty"),
        ("a: 1\n---\nb: 2\n", "line 2: expected a single document in the stream, but found another document"),
        ("a:\n\tb: 1\n", "line 2: is indented with a tab; YAML requires spaces"),
        (b"a: 1\nb: \xff\n", "line 2: is not UTF-8 text"),
        ("a: 1".encode("utf-16"), "line 1: is not UTF-8 text"),
        ("a: \x00", "holds the control character U+0000"),
        ("a: b: c", "line 1: mapping values are not allowed here"),
        ("a: [1", "line 1: while parsing a flow sequence, expected ',' or ']', but got '<stream end>'"),
        ("a: *b", "line 1: found undefined alias 'b'"),
        ("[" * 600, "is nested too deeply"),
        ("&a [*a]", "is nested too deeply"),
    ],
)
def test_unreadable_yaml_gives_one_clear_fault(content: str | bytes, fault: str) -> None:
    assert faults(content) == [fault]
    assert read_document(content if isinstance(content, bytes) else content.encode()).root is None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a: 1\nb: 2\na: 3", ["a (line 3): is a duplicate, first in line 1"]),
        ("a:\n- {x: 1, x: 2}", ["a[0].x (line 2): is a duplicate, first in line 2"]),
        ("a: !mine b", ['a (line 1): has the unknown tag "!mine"']),
        (
            "a: !!python/name:os.kill x",
            ['a (line 1): has the unknown tag "tag:yaml.org,2002:python/name:os.kill"'],
        ),
        ('a: "\\ud800"', ['a (line 1): is not text: "?"']),
        ('"\\udfff": 1\n"b": 2', ['line 1: is not text: "?"']),
        ("? [a]\n: b", ["line 1: has a key that is not a string"]),
        (
            "a: 1\na: !x 2",
            ["a (line 2): is a duplicate, first in line 1", 'a (line 2): has the unknown tag "!x"'],
        ),
    ],
)
def test_every_fault_of_a_readable_file_is_reported(content: str, expected: list[str]) -> None:
    found = sorted(faults(content))
    assert len(found) == len(expected)
    assert all(one.startswith(start) for one, start in zip(found, sorted(expected), strict=True))


def test_a_long_key_is_cut_in_the_message() -> None:
    (fault,) = faults("? " + "ä" * 5000 + "\n: !x 1")
    assert len(fault) < 1200


def test_aliases_of_aliases_do_not_explode() -> None:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 60)]
    assert faults("\n".join(lines)) == ["holds more than 100000 values"]


@pytest.mark.parametrize(
    ("path", "key", "path_of_part"),
    [
        ("", "a", "a"),
        ("a", "b-c", "a.b-c"),
        ("a", 2, "a[2]"),
        ("labels", "a.b/c", 'labels["a.b/c"]'),
        ("a", "x\ny", 'a["x\\ny"]'),
        ("", "", '[""]'),
    ],
)
def test_a_path_names_a_part_on_one_line(path: str, key: str | int, path_of_part: str) -> None:
    assert joined(path, key) == path_of_part


@given(st.binary())
def test_no_bytes_at_all_raise(content: bytes) -> None:
    document = read_document(content)
    assert document.root is not None or document.faults


@given(st.text(alphabet="ab:-?[]{},&*!|>'\"#%@ \n\t\\<~1.", max_size=60))
def test_no_text_that_looks_like_yaml_raises(content: str) -> None:
    document = read_document(content.encode())
    assert document.root is not None or document.faults
    assert all(str(fault).isprintable() for fault in document.faults)
