"""VolumeBinding agrees with its rules, taken one node and one claim at a time."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from reberth.forecast.state.plugin_args import VolumeBindingArgs
from reberth.forecast.volumes.binding import filter_volume_binding
from tests.support.builders import Object, node, pod
from tests.support.forecast.crowds import labels_of, of_kind, selects
from tests.support.forecast.volumes import (
    HOSTNAME,
    ZONE,
    claim,
    claimed,
    csi_driver,
    near,
    owned,
    pool,
    storage_class,
    topology,
    volume,
)
from tests.support.forecast.worlds import asking, refused, world

FAR = "node(s) didn't match PersistentVolume's node affinity"
LACKS = "node(s) didn't find available persistent volumes to bind"
FULL = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
SELECTED = "volume.kubernetes.io/selected-node"
GIGA = {f"{number}Gi": number for number in range(1, 10)}
NODES = [
    node("n1", labels={ZONE: "a", HOSTNAME: "h1"}),
    node("n2", labels={ZONE: "a", HOSTNAME: "h2"}),
    node("n3", labels={ZONE: "b", HOSTNAME: "h3"}),
]
CLASSES = ("static", "wait")
sizes = st.sampled_from(["1Gi", "2Gi", "3Gi"])
modes = st.lists(st.sampled_from(["ReadWriteOnce", "ReadOnlyMany"]), min_size=1, max_size=2, unique=True)
affinities = st.sampled_from(
    [None, None, near(ZONE, "a"), near(ZONE, "b"), near(ZONE, "a", "b")]
    + [near(HOSTNAME, name) for name in ("h1", "h2", "h3")]
)
rarely = st.sampled_from([True] + [False] * 5)


@st.composite
def volumes(draw: st.DrawFn, name: str) -> Object:
    extra: Object = {}
    if draw(rarely):
        extra["volumeMode"] = "Block"
    if draw(rarely):
        extra["claimRef"] = owned(draw(st.sampled_from("cde")), draw(st.sampled_from([None, "other"])))
    return volume(
        name,
        size=draw(sizes),
        access=tuple(draw(modes)),
        storage_class=draw(st.sampled_from(CLASSES)),
        near=draw(affinities),
        labels=draw(st.sampled_from([{}, {"tier": "fast"}])),
        phase=draw(st.sampled_from(["Available"] * 5 + ["Released"])),
        **extra,
    )


@st.composite
def claims(draw: st.DrawFn, name: str) -> Object:
    kind = draw(st.sampled_from(["waiting"] * 5 + ["selected", "bound"]))
    selector = {"selector": {"matchLabels": {"tier": "fast"}}} if draw(rarely) else {}
    selected = {SELECTED: draw(st.sampled_from(["n1", "n2"]))} if kind == "selected" else None
    return claim(
        name,
        size=draw(sizes),
        access=tuple(draw(modes)[:1]),
        storage_class=draw(st.sampled_from(CLASSES)),
        volume=draw(st.sampled_from(["v0", "v1", "gone"])) if kind == "bound" else None,
        annotations=selected,
        **selector,
    )


@st.composite
def stores(draw: st.DrawFn) -> list[Object]:
    pools = [
        pool(f"pool-{place}", draw(sizes), near=draw(st.sampled_from([{}, {"matchLabels": {ZONE: "a"}}])))
        for place in range(draw(st.integers(0, 2)))
    ]
    allowed = draw(st.sampled_from([(), (), (topology(ZONE, "a"),), (topology(HOSTNAME, "h2", "h3"),)]))
    return [
        storage_class("static", provisioner="kubernetes.io/no-provisioner"),
        storage_class("wait", allowed=allowed),
        csi_driver(storageCapacity=draw(st.booleans())),
        *pools,
        *(draw(volumes(f"v{place}")) for place in range(draw(st.integers(0, 7)))),
        *(draw(claims(name)) for name in "cde"),
    ]


@settings(max_examples=400, deadline=None)
@given(stores(), st.lists(st.sampled_from("cde"), min_size=1, max_size=4))
def test_volume_binding_agrees_with_the_definition(objects: list[Object], names: list[str]) -> None:
    view = world(*NODES, *objects, pod("asking", volumes=claimed(*names)))
    verdict = filter_volume_binding(asking(view), view, VolumeBindingArgs())
    by_name = {each["metadata"]["name"]: each for each in of_kind(objects, "PersistentVolumeClaim")}
    asked = [by_name[name] for name in names]
    expected = {each["metadata"]["name"]: reasons(objects, asked, each) for each in NODES}
    assert refused(view, verdict) == {name: said for name, said in expected.items() if said}


def reasons(objects: list[Object], asked: list[Object], at: Object) -> list[str]:
    bound = [each for each in asked if each["spec"]["volumeName"]]
    waiting = [each for each in asked if not each["spec"]["volumeName"]]
    far, gone = check_bound(objects, bound, at)
    why = check_waiting(objects, waiting, at)
    return [*([FAR] if far else []), *([why] if why else []), *([GONE] if gone else [])]


def check_bound(objects: list[Object], bound: list[Object], at: Object) -> tuple[bool, bool]:
    known = {each["metadata"]["name"]: each for each in of_kind(objects, "PersistentVolume")}
    for each in bound:
        found = known.get(each["spec"]["volumeName"])
        if found is None:
            return False, True
        if not is_near(found, at):
            return True, False
    return False, False


def check_waiting(objects: list[Object], waiting: list[Object], at: Object) -> str | None:
    selected = [each for each in waiting if SELECTED in each["metadata"]["annotations"]]
    if any(each["metadata"]["annotations"][SELECTED] != at["metadata"]["name"] for each in selected):
        return LACKS
    taken: set[str] = set()
    to_make = list(selected)
    for each in sorted((each for each in waiting if each not in selected), key=size_of_claim):
        found = match(objects, each, at, taken)
        if found is None:
            to_make.append(each)
        else:
            taken.add(found)
    return next((why for each in to_make if (why := cannot_make(objects, each, at))), None)


def match(objects: list[Object], asked: Object, at: Object, taken: set[str]) -> str | None:
    """Find the best volume for a claim on a node."""
    best: Object | None = None
    for each in of_kind(objects, "PersistentVolume"):
        spec, owner = each["spec"], each["spec"].get("claimRef")
        if each["metadata"]["name"] in taken or spec["storageClassName"] != asked["spec"]["storageClassName"]:
            continue
        if owner and (owner["name"] != asked["metadata"]["name"] or owner.get("uid")):
            continue
        if size_of(each) < size_of_claim(asked) or spec.get("volumeMode"):
            continue
        if owner:
            return each["metadata"]["name"] if is_near(each, at) else None
        if each["status"]["phase"] != "Available" or not is_near(each, at):
            continue
        if not selects(asked["spec"].get("selector", {}), labels_of(each)):
            continue
        if not set(asked["spec"]["accessModes"]) <= set(spec["accessModes"]):
            continue
        if best is None or size_of(each) < size_of(best):
            best = each
    return best["metadata"]["name"] if best else None


def cannot_make(objects: list[Object], asked: Object, at: Object) -> str | None:
    if asked["spec"]["storageClassName"] == "static":
        return LACKS
    (made_by,) = (each for each in of_kind(objects, "StorageClass") if each["metadata"]["name"] == "wait")
    terms: list[Any] = made_by["allowedTopologies"]
    if terms and not any(allows(term, at) for term in terms):
        return LACKS
    (driver,) = of_kind(objects, "CSIDriver")
    if not driver["spec"]["storageCapacity"]:
        return None
    pools = of_kind(objects, "CSIStorageCapacity")
    enough = [each for each in pools if GIGA[each["capacity"]] >= size_of_claim(asked)]
    return None if any(selects(each["nodeTopology"], labels_of(at)) for each in enough) else FULL


def allows(term: Object, at: Object) -> bool:
    return all(labels_of(at).get(each["key"]) in each["values"] for each in term["matchLabelExpressions"])


def is_near(found: Object, at: Object) -> bool:
    affinity = found["spec"].get("nodeAffinity")
    if not affinity:
        return True
    (term,) = affinity["required"]["nodeSelectorTerms"]
    return all(labels_of(at).get(each["key"]) in each["values"] for each in term["matchExpressions"])


def size_of(found: Object) -> int:
    return GIGA[found["spec"]["capacity"]["storage"]]


def size_of_claim(asked: Object) -> int:
    return GIGA[asked["spec"]["resources"]["requests"]["storage"]]
