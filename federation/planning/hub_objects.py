"""A copy of a hub's objects that takes patches as the API server does."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from federation.api import (
    WORK_API_VERSION,
    Cluster,
    PropagationPolicy,
    RebalancerStatus,
    ResourceBinding,
    ResourceInterpreterCustomization,
    WorkloadRebalancer,
)
from federation.api.bindings import kind_of
from federation.interpreters.kind_rules import KindRules
from federation.objects.merge_patch import apply_merge_patch
from federation.objects.names import Key, binding_of, cluster_of_works
from federation.objects.resources import HeldWork
from federation.objects.template import Object, ResourceTemplate
from federation.propagation.binding import find_misuse
from federation.propagation.policy_match import PolicyIndex
from federation.propagation.schedule_result import priority_rank
from reberth.records import ObjectMeta, Record

R = TypeVar("R", bound=Record)


class HubSnapshot(NamedTuple):
    """The objects of a hub at one time.

    Of the kinds in `complete` all templates are known: a binding whose template is not there is deleted.
    """

    clusters: Iterable[Cluster] = ()
    bindings: Iterable[ResourceBinding] = ()
    works: Iterable[HeldWork] = ()
    policies: Iterable[PropagationPolicy] = ()
    templates: Iterable[tuple[Key, ResourceTemplate]] = ()
    rebalancers: Iterable[WorkloadRebalancer] = ()
    complete: frozenset[tuple[str, str]] = frozenset()
    interpreters: Iterable[ResourceInterpreterCustomization] = ()


class HubObjects:
    """The objects by name, as they are and as the steps of a plan change them."""

    def __init__(self, snapshot: HubSnapshot) -> None:
        self._clusters = {each.metadata.name: each for each in snapshot.clusters}
        self.cluster_rows: tuple[Cluster, ...] = tuple(self._clusters.values())
        self.bindings = {key_of_bound(each): each for each in snapshot.bindings}
        self.templates = dict(snapshot.templates)
        self.rebalancers = {each.metadata.name: each for each in snapshot.rebalancers}
        self.complete = snapshot.complete
        self.rules = KindRules()
        self.rules.load(snapshot.interpreters)
        self._works = _index_works(snapshot.works)
        self._policies = _index_policies(snapshot.policies)

    @property
    def has_policies(self) -> bool:
        return bool(self._policies)

    def find_cluster(self, name: str) -> Cluster | None:
        return self._clusters.get(name)

    def find_binding(self, key: Key) -> ResourceBinding | None:
        """Return the binding; None if it does not exist, or if nothing may be propagated by it."""
        binding = self.bindings.get(key)
        return None if binding is None or find_misuse(binding) else binding

    def list_bindings(self) -> Iterator[tuple[Key, ResourceBinding]]:
        """Yield the bindings in the order in which queues take them: by priority, scope and name."""
        keys = sorted(self.bindings, key=lambda key: (not key.namespace, key.namespace, key.name))
        for key in sorted(keys, key=lambda key: priority_rank(self.bindings[key])):
            binding = self.find_binding(key)
            if binding is not None:
                yield key, binding

    def works_of(self, key: Key) -> Mapping[str, HeldWork]:
        return self._works.get(key, {})

    def find_policies(self, key: Key) -> Iterator[PropagationPolicy]:
        for namespace in dict.fromkeys((key.namespace, "")):
            if namespace in self._policies:
                yield from self._policies[namespace].find(key)

    def list_metas(self, api_version: str, kind: str) -> Iterator[ObjectMeta]:
        """Yield the metadata of all templates of a kind."""
        for key in sorted(self.templates):
            if (key.api_version, key.kind) == (api_version, kind):
                yield self.templates[key].metadata

    def patch_cluster(self, name: str, patch: Object) -> Cluster:
        self._clusters[name] = changed = _patch(self._clusters[name], patch)
        self.cluster_rows = tuple(self._clusters.values())
        return changed

    def patch_binding(self, key: Key, patch: Object) -> ResourceBinding:
        self.bindings[key] = changed = _patch(self.bindings[key], patch)
        return changed

    def create_binding(self, key: Key, body: Object) -> ResourceBinding:
        metadata = {**body["metadata"], "namespace": key.namespace, "generation": 1}
        wire = msgspec.json.encode({**body, "metadata": metadata})
        self.bindings[key] = created = msgspec.json.decode(wire, type=ResourceBinding)
        return created

    def patch_template(self, key: Key, patch: Object) -> None:
        """Change the metadata of a template; claims are all that controllers write there."""
        template = self.templates[key]
        metadata = apply_merge_patch(msgspec.to_builtins(template.metadata), patch["metadata"])
        self.templates[key] = replace(template, metadata=msgspec.convert(metadata, ObjectMeta))

    def put_rebalancer_status(self, name: str, status: RebalancerStatus) -> WorkloadRebalancer:
        self.rebalancers[name] = changed = replace(self.rebalancers[name], status=status)
        return changed


def key_of_bound(binding: ResourceBinding) -> Key:
    meta = binding.metadata
    return Key(WORK_API_VERSION, kind_of(binding), meta.namespace, meta.name)


def _patch(record: R, patch: Object) -> R:
    """Apply a merge patch; a change of the spec raises the generation."""
    had: Any = msgspec.json.decode(msgspec.json.encode(record))
    made = apply_merge_patch(had, patch)
    if made.get("spec") != had.get("spec"):
        made["metadata"]["generation"] = had["metadata"].get("generation", 0) + 1
    return msgspec.json.decode(msgspec.json.encode(made), type=type(record))


def _index_works(works: Iterable[HeldWork]) -> dict[Key, dict[str, HeldWork]]:
    found: dict[Key, dict[str, HeldWork]] = {}
    for work in works:
        if key := binding_of(work.metadata, WORK_API_VERSION):
            found.setdefault(key, {})[cluster_of_works(work.metadata.namespace) or ""] = work
    return found


def _index_policies(policies: Iterable[PropagationPolicy]) -> dict[str, PolicyIndex]:
    by_namespace: dict[str, list[PropagationPolicy]] = {}
    for policy in policies:
        by_namespace.setdefault(policy.metadata.namespace, []).append(policy)
    return {
        name: PolicyIndex(sorted(each, key=lambda one: one.metadata.name))
        for name, each in by_namespace.items()
    }
