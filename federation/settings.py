"""Settings of `python -m federation run`: each controller can be disabled, and has its own section."""

from federation.controllers.failover.application_failover import ApplicationFailoverSettings
from federation.controllers.failover.graceful import GracefulSettings
from federation.controllers.failover.pending_replicas import PendingReplicasSettings
from federation.controllers.failover.tainting import TaintingSettings
from federation.controllers.membership.discovery import DiscoverySettings
from federation.controllers.membership.members import MemberSettings
from federation.controllers.membership.tokens import TokensSettings
from federation.controllers.propagation.execution import ExecutionSettings
from federation.controllers.propagation.namespaces import NamespacesSettings
from federation.controllers.propagation.scheduler import SchedulerSettings
from federation.controllers.propagation.statuses import StatusSettings
from federation.controllers.propagation.works import WorkSettings
from federation.controllers.rebalancing.failback import FailbackSettings
from federation.controllers.rebalancing.handovers import HandoverSettings
from federation.controllers.rebalancing.rebalancer import RebalancerSettings
from federation.hub.karmada_leases import KarmadaSettings
from federation.hub.sessions import SessionSettings
from federation.hub.workqueue import QueueSettings
from reberth.client.api import ApiSettings
from reberth.client.lease import LeaseSettings
from reberth.client.watcher import WatchSettings
from reberth.config.settings import Section
from reberth.runtime.http_server import ServerSettings
from reberth.runtime.logs import LogSettings


class FederationLease(LeaseSettings, frozen=True):
    name: str = "reberth-federation"


class EventApiSettings(ApiSettings, frozen=True):
    """Events have their own rate limit, so that no decision waits for them."""

    requests_per_second: float = 10.0


class FederationServer(ServerSettings, frozen=True):
    """Serves only probes and metrics."""

    port: int = 8444


class Switches(Section, frozen=True):
    """Which controllers run. Another program, such as Karmada's, may do the work of a disabled one."""

    members: bool = True
    tokens: bool = True
    detector: bool = True
    dependencies: bool = True
    scheduler: bool = True
    works: bool = True
    execution: bool = True
    namespaces: bool = True
    statuses: bool = True
    rebalancer: bool = True
    handovers: bool = True
    failback: bool = True
    tainting: bool = True
    graceful: bool = True
    application_failover: bool = True
    pending_replicas: bool = True

    def gives_pending(self) -> bool:
        """Tell whether replicas without a node can be given to other clusters."""
        return self.pending_replicas and self.scheduler and (self.members or self.execution)


class FederationSettings(Section, frozen=True):
    controllers: Switches = Switches()
    api: ApiSettings = ApiSettings()
    events: EventApiSettings = EventApiSettings()
    watch: WatchSettings = WatchSettings()
    lease: FederationLease = FederationLease()
    karmada: KarmadaSettings = KarmadaSettings()
    server: FederationServer = FederationServer()
    log: LogSettings = LogSettings()
    sessions: SessionSettings = SessionSettings()
    members: MemberSettings = MemberSettings()
    tokens: TokensSettings = TokensSettings()
    discovery: DiscoverySettings = DiscoverySettings()
    detector: QueueSettings = QueueSettings()
    dependencies: QueueSettings = QueueSettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    works: WorkSettings = WorkSettings()
    execution: ExecutionSettings = ExecutionSettings()
    namespaces: NamespacesSettings = NamespacesSettings()
    statuses: StatusSettings = StatusSettings()
    interpreters: QueueSettings = QueueSettings()
    rebalancer: RebalancerSettings = RebalancerSettings()
    handovers: HandoverSettings = HandoverSettings()
    failback: FailbackSettings = FailbackSettings()
    tainting: TaintingSettings = TaintingSettings()
    graceful: GracefulSettings = GracefulSettings()
    application_failover: ApplicationFailoverSettings = ApplicationFailoverSettings()
    pending_replicas: PendingReplicasSettings = PendingReplicasSettings()
