from collections import Counter
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from reberth.cluster.cache import ADDED, BOOKMARK, DELETED, MODIFIED, Cache, Listing
from reberth.cluster.kinds import NODE, POD, SERVICE
from reberth.cluster.pod_counts import count_namespace
from reberth.cluster.pods.identity import find_controller
from reberth.cluster.pods.interning import split_pod
from reberth.cluster.rows import PodRow
from reberth.cluster.templates import pack
from reberth.records import Labels, ObjectMeta, Pod, Service
from reberth.values.object_error import ObjectError
from tests.support.builders import Object, as_record, owner, pod
from tests.support.cluster.strategies import NAMES, NAMESPACES, node_record, pod_record, pods

KUBERNETES = (1, 36)
State = dict[tuple[str, str], Pod]


class World(RuleBasedStateMachine):
    """An API server of pods, and a mirror of it that a poor network feeds.

    The mirror must always show the state as it was at the newest event or list that it has been given.
    """

    def __init__(self) -> None:
        super().__init__()
        self.events: list[tuple[str, Pod]] = []
        self.states: list[State] = [{}]
        self.position = 0
        self.cache = Cache(version=KUBERNETES)
        self.listing: Listing[Pod, PodRow] | None = None
        self.listed: list[Pod] = []
        self.listed_at = 0

    @property
    def revision(self) -> int:
        return len(self.events)

    @rule(built=pods())
    def write(self, built: Object) -> None:
        """Create the object, or change the one of this name."""
        key = (built["metadata"]["namespace"], built["metadata"]["name"])
        known = self.states[-1].get(key)
        uid = known.metadata.uid if known else f"{key}-{self.revision}"
        record = pod_record(built, self.revision + 1, uid=uid)
        self._happen(MODIFIED if known else ADDED, record, {**self.states[-1], key: record})

    @precondition(lambda self: self.states[-1])
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.states[-1])))
        gone = pod_record(
            pod(key[1], namespace=key[0]), self.revision + 1, uid=self.states[-1][key].metadata.uid
        )
        self._happen(DELETED, gone, {name: each for name, each in self.states[-1].items() if name != key})

    @precondition(lambda self: self.position < self.revision)
    @rule()
    def deliver(self) -> None:
        assert self.cache.apply(POD, *self.events[self.position])
        self.position += 1

    @precondition(lambda self: self.position)
    @rule(data=st.data())
    def deliver_again(self, data: st.DataObject) -> None:
        late = data.draw(st.integers(0, self.position - 1))
        assert not self.cache.apply(POD, *self.events[late])

    @precondition(lambda self: self.position == self.revision)
    @rule()
    def bookmark(self) -> None:
        subject = Pod(ObjectMeta(resource_version=str(self.revision)))
        assert not self.cache.apply(POD, BOOKMARK, subject)

    @rule(data=st.data())
    def begin_list(self, data: st.DataObject) -> None:
        """Begin a list, mostly of now, sometimes of an older state; one that was under way is given up."""
        self.listed_at = data.draw(st.sampled_from([self.revision, self.revision, self.revision // 2]))
        self.listed = data.draw(st.permutations(list(self.states[self.listed_at].values())))
        self.listing = self.cache.relist(POD)

    @precondition(lambda self: self.listing and self.listed)
    @rule(size=st.integers(1, 3))
    def read_page(self, size: int) -> None:
        assert self.listing
        for record in self.listed[:size]:
            self.listing.apply(ADDED, record)
        del self.listed[:size]

    @precondition(lambda self: self.listing and not self.listed)
    @rule()
    def end_list(self) -> None:
        assert self.listing
        self.listing.finish(str(self.listed_at))
        self.position = self.listed_at
        self.listing = None

    @invariant()
    def the_mirror_shows_the_state_at_its_version(self) -> None:
        expected = self.states[self.position]
        table = self.cache.of(POD)
        assert len(table) == len(expected)
        for (namespace, name), record in expected.items():
            row = table.named(namespace, name)
            assert row is not None
            assert row is table.by_uid(record.metadata.uid)
            assert_shows(row, record)
        for namespace in NAMESPACES:
            for name in set(NAMES) - {name for where, name in expected if where == namespace}:
                assert table.named(namespace, name) is None

    @invariant()
    def pods_that_can_be_disrupted_are_counted(self) -> None:
        counted = [record for record in self.states[self.position].values() if can_be_disrupted(record)]
        counts = self.cache.pod_counts
        assert counts.in_cluster == len(counted)
        for namespace in NAMESPACES:
            theirs = [record for record in counted if record.metadata.namespace == namespace]
            assert counts.in_namespace(namespace) == len(theirs)
            owners = Counter(find_controller(record.metadata) for record in theirs)
            for workload in filter(None, owners):
                assert self.cache.count_workload(namespace, workload) == owners[workload]
            rows = self.cache.of(POD).rows().part(namespace).read(count_namespace)
            assert vars(rows) == vars(counts.within(namespace))

    @invariant()
    def the_mirror_knows_its_version(self) -> None:
        assert self.cache.seen(POD) == self.position

    @invariant()
    def rows_are_sorted_and_complete(self) -> None:
        rows = self.cache.of(POD).rows()
        assert [(row.namespace, row.name) for row in rows] == sorted(self.states[self.position])

    @invariant()
    def there_is_one_template_for_all_that_is_equal_and_none_more(self) -> None:
        rows = self.cache.of(POD).rows()
        for row in rows:
            alike = [other for other in rows if other.template.pod == row.template.pod]
            assert {id(other.template) for other in alike} == {id(row.template)}
        if self.listing is None:
            assert len(self.cache.templates) == len({id(row.template) for row in rows})

    def _happen(self, event: str, subject: Pod, state: State) -> None:
        self.events.append((event, subject))
        self.states.append(state)


def can_be_disrupted(record: Pod) -> bool:
    """Tell whether limits in percent count the pod."""
    controller = find_controller(record.metadata)
    return (
        record.spec.node_name is not None
        and record.status.phase not in ("Succeeded", "Failed")
        and record.metadata.deletion_timestamp is None
        and (controller is None or controller.kind != "DaemonSet")
    )


def assert_shows(row: PodRow, record: Pod) -> None:
    meta = record.metadata
    assert (row.namespace, row.name, row.uid) == (meta.namespace, meta.name, meta.uid)
    assert row.version == int(meta.resource_version)
    assert row.node == record.spec.node_name
    assert row.labels == (meta.labels or {})
    assert row.phase == record.status.phase
    assert row.is_terminating == (meta.deletion_timestamp is not None)
    assert row.template.pod == split_pod(record)[0]


TestWorld = World.TestCase


def service(name: str, version: str, *, uid: str = "", annotations: Labels | None = None) -> Service:
    return Service(
        ObjectMeta(name, "default", uid or name, resource_version=version, annotations=annotations)
    )


def replica(number: int, version: int, **fields: Any) -> Pod:
    built = pod(f"web-{number}", owned_by=owner("ReplicaSet", "web"), **fields)
    return pod_record(built, version, uid=f"uid-{number}")


def test_an_unknown_kind_is_empty_and_not_listed() -> None:
    cache = Cache(version=KUBERNETES)
    assert (len(cache.of(SERVICE)), cache.seen(SERVICE), cache.is_complete(SERVICE)) == (0, 0, False)


def test_a_kind_is_complete_after_its_first_list() -> None:
    cache = Cache(version=KUBERNETES)
    cache.replace(SERVICE, [service("a", "3")], "5")
    assert cache.is_complete(SERVICE)
    assert cache.seen(SERVICE) == 5


def test_a_bookmark_moves_the_version_on() -> None:
    cache = Cache(version=KUBERNETES)
    cache.replace(SERVICE, [], "5")
    assert cache.apply(SERVICE, BOOKMARK, service("", "9"))
    assert cache.seen(SERVICE) == 9


def test_readers_see_the_old_state_until_a_new_list_is_finished() -> None:
    cache = Cache(version=KUBERNETES)
    cache.replace(SERVICE, [service("a", "1"), service("b", "2")], "5")
    listing = cache.relist(SERVICE)
    listing.apply(ADDED, service("c", "7"))
    assert [each.metadata.name for each in cache.of(SERVICE).rows()] == ["a", "b"]
    listing.finish("8")
    assert [each.metadata.name for each in cache.of(SERVICE).rows()] == ["c"]


def test_a_list_that_breaks_off_changes_nothing() -> None:
    cache = Cache(version=KUBERNETES)
    cache.replace(SERVICE, [service("a", "1")], "5")
    with pytest.raises(ObjectError):
        cache.replace(SERVICE, [service("b", "6"), service("c", "x")], "8")
    assert [each.metadata.name for each in cache.of(SERVICE).rows()] == ["a"]
    assert cache.seen(SERVICE) == 5


def test_a_streamed_list_may_hold_changes_deletions_and_bookmarks() -> None:
    cache = Cache(version=KUBERNETES)
    listing = cache.relist(SERVICE)
    for event, subject in [
        (ADDED, service("a", "1")),
        (ADDED, service("b", "2")),
        (MODIFIED, service("a", "4")),
        (DELETED, service("b", "5")),
        (BOOKMARK, service("", "6")),
    ]:
        listing.apply(event, subject)
    listing.finish("6")
    assert [each.metadata.resource_version for each in cache.of(SERVICE).rows()] == ["4"]


def test_replacing_the_list_keeps_the_rows_of_unchanged_objects() -> None:
    cache = Cache(version=KUBERNETES)
    cache.replace(POD, [replica(1, 1), replica(2, 2)], "5")
    before = cache.of(POD).rows().all
    cache.replace(POD, [replica(1, 1), replica(2, 7, node="n1")], "8")
    after = cache.of(POD).rows().all
    assert after[0] is before[0]
    assert after[1] is not before[1]


def test_another_object_under_the_same_name_takes_its_place() -> None:
    cache = Cache(version=KUBERNETES)
    cache.replace(SERVICE, [service("a", "1", uid="old")], "5")
    cache.apply(SERVICE, ADDED, service("a", "6", uid="new"))
    assert cache.of(SERVICE).by_uid("old") is None
    assert cache.of(SERVICE).by_uid("new") is cache.of(SERVICE).named("default", "a")
    assert cache.apply(SERVICE, DELETED, service("a", "7", uid="old"))
    assert len(cache.of(SERVICE)) == 1


def test_unread_annotations_are_dropped_from_every_kind() -> None:
    cache = Cache(version=KUBERNETES)
    long = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "reberth.dev/automation": "off"}
    cache.replace(SERVICE, [service("a", "1", annotations=long)], "5")
    (kept,) = cache.of(SERVICE).rows()
    assert kept.metadata.annotations == {"reberth.dev/automation": "off"}


@pytest.mark.parametrize("version", ["", "abc", "-1", "1.5", "٣"])
def test_a_version_that_is_no_number_is_named(version: str) -> None:
    cache = Cache(version=KUBERNETES)
    with pytest.raises(ObjectError, match=r"Service default/a: metadata.resourceVersion: .* is not a number"):
        cache.apply(SERVICE, ADDED, service("a", version))
    with pytest.raises(ObjectError, match="metadata.resourceVersion"):
        cache.relist(SERVICE).finish(version)


def test_an_unusable_object_keeps_its_last_known_state() -> None:
    cache = Cache(version=KUBERNETES)
    cache.replace(POD, [replica(1, 1)], "5")
    with pytest.raises(ObjectError, match=r"spec.containers\[0\].resources.requests.cpu"):
        cache.apply(POD, MODIFIED, replica(1, 6, cpu="much"))
    (row,) = cache.of(POD).rows()
    assert (row.version, cache.seen(POD)) == (1, 5)


def test_an_unusable_object_in_a_list_keeps_its_last_known_state() -> None:
    cache = Cache(version=KUBERNETES)
    cache.replace(POD, [replica(1, 1)], "5")
    listing = cache.relist(POD)
    with pytest.raises(ObjectError):
        listing.apply(ADDED, replica(1, 6, cpu="much"))
    listing.finish("8")
    (row,) = cache.of(POD).rows()
    assert row.version == 1


def test_the_newest_usable_version_of_a_streamed_list_stays() -> None:
    cache = Cache(version=KUBERNETES)
    cache.replace(POD, [replica(1, 1)], "5")
    listing = cache.relist(POD)
    listing.apply(ADDED, replica(1, 6))
    with pytest.raises(ObjectError):
        listing.apply(MODIFIED, replica(1, 7, cpu="much"))
    listing.finish("8")
    (row,) = cache.of(POD).rows()
    assert row.version == 6


def test_replicas_share_one_template() -> None:
    cache = Cache(version=KUBERNETES)
    cache.replace(POD, [replica(number, number, cpu="1") for number in range(1, 11)], "20")
    assert len({id(row.template) for row in cache.of(POD).rows()}) == 1
    assert len(cache.templates) == 1


def test_a_pod_that_is_resized_in_place_has_a_template_of_its_own() -> None:
    cache = Cache(version=KUBERNETES)
    cache.replace(POD, [replica(1, 1, cpu="1"), replica(2, 2, cpu="1")], "5")
    actual = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
    cache.apply(POD, MODIFIED, replica(2, 6, cpu="1", status={"containerStatuses": actual}))
    one, other = cache.of(POD).rows()
    assert one.template is not other.template
    assert (one.template.main, other.template.main) == (pack(1000, 0, 0, 1), pack(2000, 0, 0, 1))


def test_templates_go_with_their_last_pod() -> None:
    cache = Cache(version=KUBERNETES)
    for rollout in range(1, 1001):
        image = [{"name": "main", "image": f"app:{rollout}"}]
        cache.apply(POD, MODIFIED, replica(1, 2 * rollout, containers=image))
        cache.apply(POD, MODIFIED, replica(2, 2 * rollout + 1, containers=image))
    assert len(cache.templates) == 1
    cache.apply(POD, DELETED, replica(1, 5000))
    cache.apply(POD, DELETED, replica(2, 5001))
    assert len(cache.templates) == 0


def test_collected_contents_do_not_change_afterwards() -> None:
    cache = Cache(version=KUBERNETES)
    cache.replace(NODE, [node_record({"metadata": {"name": "n1"}})], "5")
    contents = cache.contents()
    cache.apply(NODE, DELETED, node_record({"metadata": {"name": "n1"}}, 6))
    assert [row.record.metadata.name for row in contents[NODE]] == ["n1"]
    assert len(cache.contents()[NODE]) == 0


def test_a_kind_that_did_not_change_is_collected_once() -> None:
    cache = Cache(version=KUBERNETES)
    cache.replace(SERVICE, [service("a", "1")], "5")
    first = cache.contents()[SERVICE]
    cache.apply(POD, ADDED, as_record(Pod, {"metadata": {"name": "p", "uid": "u", "resourceVersion": "6"}}))
    assert cache.contents()[SERVICE] is first


PINNED = frozenset({"example.com/pinned"})


def pinned(name: str, version: int) -> Pod:
    return pod_record(pod(name, annotations={"example.com/pinned": "yes"}), version, uid=f"uid-{name}")


def annotations_of(cache: Cache) -> dict[str, Labels]:
    return {row.name: row.annotations for row in cache.of(POD).rows()}


def test_an_annotation_registered_up_front_is_kept() -> None:
    cache = Cache(version=KUBERNETES, annotations=PINNED)
    cache.replace(POD, [pinned("a", 1)], "1")
    assert annotations_of(cache) == {"a": {"example.com/pinned": "yes"}}
    assert cache.keeps_annotations(PINNED)
    assert not cache.keep_annotations(PINNED)


def test_an_annotation_registered_later_is_kept_after_the_next_list() -> None:
    """A list that had begun before does not count: it took over what was known."""
    cache = Cache(version=KUBERNETES)
    cache.replace(POD, [pinned("a", 1)], "1")
    early = cache.relist(POD)
    early.apply(ADDED, pinned("a", 1))
    assert cache.keep_annotations(PINNED)
    early.finish("2")
    assert annotations_of(cache) == {"a": {}}
    assert not cache.keeps_annotations(PINNED)
    cache.replace(POD, [pinned("a", 1)], "3")
    assert annotations_of(cache) == {"a": {"example.com/pinned": "yes"}}
    assert cache.keeps_annotations(PINNED)


def test_rows_that_lack_nothing_are_not_made_again() -> None:
    cache = Cache(version=KUBERNETES, annotations=PINNED)
    cache.replace(POD, [pinned("a", 1)], "1")
    before = cache.of(POD).by_uid("uid-a")
    cache.replace(POD, [pinned("a", 1)], "2")
    assert cache.of(POD).by_uid("uid-a") is before


def resized(version: int) -> Pod:
    """A pod in the middle of a resize: 1.36 counts each container's largest request, 1.37 the largest sum."""
    said = [{"name": name, "resources": {"requests": {"cpu": cpu}}} for name, cpu in (("a", "3"), ("b", "1"))]
    asked = [
        {"name": name, "resources": {"requests": {"cpu": cpu}}} for name, cpu in (("a", "1"), ("b", "3"))
    ]
    made = {**pod("a", node="n"), "status": {"containerStatuses": said}}
    made["spec"] = {**made["spec"], "containers": asked}
    return pod_record(made, version, uid="uid-a")


def cpu_of(cache: Cache) -> int:
    row = cache.of(POD).by_uid("uid-a")
    assert row is not None
    return int(memoryview(row.template.main).cast("q")[0])


def test_requests_are_counted_for_a_new_version_after_the_next_list() -> None:
    """Of two changes in a row both count: a list that began between them is not enough."""
    cache = Cache(version=(1, 35))
    cache.replace(POD, [resized(1)], "1")
    cache.take_version((1, 36))
    early = cache.relist(POD)
    early.apply(ADDED, resized(1))
    cache.take_version((1, 37))
    early.finish("2")
    assert not cache.keeps_annotations(frozenset())
    assert cpu_of(cache) == 6000
    cache.replace(POD, [resized(1)], "3")
    assert cache.keeps_annotations(frozenset())
    assert cpu_of(cache) == 4000
