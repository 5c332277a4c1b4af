"""The facts that rules use: owners, histories, budgets and counts."""

from reberth.cluster.pods.identity import Signature
from reberth.records import WorkloadIdentity
from reberth.values.refusal import Refused
from tests.support.builders import owner, pdb
from tests.support.rescheduler.guardrails import context_of, history, peer, place_of, replica, workload

ABOVE = [owner("Deployment", "web")]


def test_a_pod_leads_to_its_root_owner() -> None:
    context = context_of(replica(), workload("ReplicaSet", ownerReferences=ABOVE), workload("Deployment"))
    template = context.template_of(place_of(context))
    signature, root = context.sign(template), context.root(template)
    assert isinstance(signature, Signature)
    assert signature.root == WorkloadIdentity("apps/v1", "Deployment", "web", "uid-of-deployment-web")
    assert root is not None
    assert root.metadata.uid == "uid-of-deployment-web"
    assert context.identify(place_of(context)) == signature.root
    assert context.root(template) is root


def test_a_root_that_is_known_by_name_alone_is_found_by_its_name() -> None:
    mine = owner("ReplicaSet", "web-6d5")
    context = context_of(replica(owned_by=mine, labels={"pod-template-hash": "6d5"}), workload("Deployment"))
    root = context.root(context.template_of(place_of(context)))
    assert root is not None
    assert root.metadata.name == "web"


def test_an_owner_of_a_kind_that_is_not_mirrored_is_not_found() -> None:
    context = context_of(replica(owned_by=owner("Rollout", "web", api_version="argoproj.io/v1alpha1")))
    assert context.root(context.template_of(place_of(context))) is None
    foreign = owner("StatefulSet", "web", api_version="apps.kruise.io/v1beta1")
    kruise = context_of(replica(owned_by=foreign), workload("StatefulSet"))
    assert kruise.root(kruise.template_of(place_of(kruise))) is None


def test_a_pod_without_an_owner_is_its_own_workload_and_has_no_history() -> None:
    context = context_of(replica(owned_by=None, uid="u1"), history(givenUpUntil="2027-01-15T09:00:00Z"))
    template = context.template_of(place_of(context))
    assert context.identify(place_of(context)) == WorkloadIdentity("v1", "Pod", "web-1", "u1")
    assert isinstance(context.sign(template), Refused)
    assert context.root(template) is None
    assert context.history(template) is None


def test_replicas_are_counted_by_controller() -> None:
    gone = replica("web-2", deleted="2027-01-15T08:10:00Z")
    over = replica("web-3", phase="Succeeded")
    other = replica("db-1", owned_by=owner("ReplicaSet", "db"), status={})
    context = context_of(peer(), replica(), gone, over, other)
    counts = {
        name: (int(context.replicas[number]), int(context.ready_replicas[number]))
        for name in ("web-1", "db-1")
        for number in [context.workload_of[context.template_of(place_of(context, name))]]
    }
    assert counts == {"web-1": (2, 2), "db-1": (1, 0)}


def test_budgets_are_those_of_the_namespace_that_select_the_pod() -> None:
    mine, other, away = pdb("mine", "web"), pdb("other", "db"), pdb("away", "web", namespace="shop")
    context = context_of(replica(labels={"app": "web"}), mine, other, away)
    found = context.budgets_of(context.row(place_of(context)))
    assert [budget.record.metadata.name for budget in found] == ["mine"]


def test_the_ledger_of_a_cluster_without_one_is_empty() -> None:
    assert context_of().ledger.status.debits is None
