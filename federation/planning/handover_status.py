"""What is known of the copies of a workload that is handed over."""

from collections.abc import Mapping

from msgspec.structs import replace

from federation.api import ResourceBinding
from federation.membership.cluster_status import is_member_ready
from federation.objects.resources import HeldWork
from federation.planning.evictions import FindCluster
from federation.propagation.aggregation import read_copies


def with_newest_status(
    binding: ResourceBinding, works: Mapping[str, HeldWork], find: FindCluster
) -> ResourceBinding:
    """Use the status of the Works: aggregatedStatus may still have a copy that is being deleted.

    Of copies in members that are not Ready nobody knows how they are.
    """
    lasting = {name: work for name, work in works.items() if work.metadata.deletion_timestamp is None}
    copies = read_copies(lasting) if works else binding.status.aggregated_status or ()
    clusters = {each.cluster_name: find(each.cluster_name) for each in copies}
    ready = {name for name, cluster in clusters.items() if cluster is not None and is_member_ready(cluster)}
    known = tuple(each for each in copies if each.cluster_name in ready)
    return replace(binding, status=replace(binding.status, aggregated_status=known))
