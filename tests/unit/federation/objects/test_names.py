import pytest

from federation.objects.names import Key, name_work

E1A = Key("apps/v1", "Deployment", "default", "e1a")
ROLE = Key("rbac.authorization.k8s.io/v1", "ClusterRole", "", "System:Reader")


def test_r_22_works_have_the_names_that_karmada_gives_them() -> None:
    assert name_work(E1A) == "e1a-7b7dc4f978"


def test_a_work_name_is_derived_from_any_object_name() -> None:
    assert name_work(ROLE) == "system.reader-95c867f78"
    assert len(name_work(E1A._replace(name="a" * 253))) == 253


@pytest.mark.parametrize("other", [E1A._replace(kind="Service"), E1A._replace(namespace="shop")])
def test_objects_of_one_name_have_works_of_different_names(other: Key) -> None:
    assert name_work(other) != name_work(E1A)
