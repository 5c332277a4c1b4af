"""The configuration of kwok, which simulates the kubelets: the life cycle of nodes and pods.

A node without conditions becomes Ready; a bound pod starts, becomes Ready, honours its termination grace.
Annotations choose another life:

    localcluster.reberth.dev/ready: "false"         node: its conditions are left to the test
    localcluster.reberth.dev/life: never-ready      pod: runs, but is never Ready
    localcluster.reberth.dev/life: crash-loop       pod: its containers end with code 1, again and again
    localcluster.reberth.dev/life: oom-killed       pod: likewise, killed for their memory
    localcluster.reberth.dev/life: faithful         pod: as a kubelet would write it; see `faithful`
    localcluster.reberth.dev/starts-after: 5s       pod: takes that long to start
    localcluster.reberth.dev/restarts-every: 2s     pod in a loop: time between two ends (default 10s)
    localcluster.reberth.dev/runs-for: 3s           pod of a Job: completes after that time (default at once)
"""

from typing import Any

import yaml

from localcluster.kwok import faithful
from localcluster.kwok.stage import (
    DELETED,
    LIFE,
    PHASE,
    PREFIX,
    absent,
    among,
    annotation,
    not_among,
    present,
    stage,
)

LEASE_SECONDS = 40
_PARALLEL = 16

_READY_ANNOTATION = f'.metadata.annotations["{PREFIX}ready"]'
_ENDS = {"crash-loop": ("Error", 1), "oom-killed": ("OOMKilled", 137)}
_NEVER_READY = "never-ready"

_NODE_STATUS = """
phase: Running
conditions:
{{ $now := Now }}
{{ range NodeConditions }}
- type: {{ .type }}
  status: {{ .status | Quote }}
  reason: {{ .reason }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $now | Quote }}
{{ end }}
{{ if not .status.allocatable }}
allocatable: {cpu: "8", memory: 32Gi, pods: "110", ephemeral-storage: 100Gi}
capacity: {cpu: "8", memory: 32Gi, pods: "110", ephemeral-storage: 100Gi}
{{ end }}
"""

_POD_HEAD = """
{{ $now := Now }}
{{ $uid := or .metadata.uid "" }}
phase: Running
startTime: {{ $now | Quote }}
{{ with PodIPWith .spec.nodeName (or .spec.hostNetwork false) $uid .metadata.name .metadata.namespace }}
podIP: {{ . | Quote }}
podIPs: [{ip: {{ . | Quote }}}]
{{ end }}
"""

_INIT_CONTAINERS = """
{{ if .spec.initContainers }}
initContainerStatuses:
{{ range .spec.initContainers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: true
  restartCount: 0
  {{ if eq (or .restartPolicy "") "Always" }}
  started: true
  state: {running: {startedAt: {{ $now | Quote }}}}
  {{ else }}
  state: {terminated: {exitCode: 0, reason: Completed, finishedAt: {{ $now | Quote }}}}
  {{ end }}
{{ end }}
{{ end }}
"""


def configuration() -> str:
    """The file that kwok is started with."""
    works = ("podPlayStage", "nodePlayStage", "nodeLease", "podsOnNodeSync")
    options = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokConfiguration",
        "options": {f"{work}Parallelism": _PARALLEL for work in works},
    }
    return yaml.safe_dump_all([options, *_stages()])


def _stages() -> list[dict[str, Any]]:
    """First match of equals: the selectors are made so that at most one fits."""
    pending = [absent(DELETED), among(PHASE, "Pending")]
    running = [absent(DELETED), among(PHASE, "Running")]
    owned_by_job = among(".metadata.ownerReferences.[].kind", "Job")
    start = {"durationFrom": annotation("starts-after")}
    again = {"durationMilliseconds": 10_000, "durationFrom": annotation("restarts-every")}
    return [
        stage("node-becomes-ready", "Node", _unready_nodes(), status=_NODE_STATUS),
        stage(
            "pod-starts",
            "Pod",
            [*pending, not_among(LIFE, _NEVER_READY, *faithful.LIVES)],
            status=_started(ready=True),
            delay=start,
        ),
        stage(
            "pod-hangs",
            "Pod",
            [*pending, among(LIFE, _NEVER_READY)],
            status=_started(ready=False),
            delay=start,
        ),
        *(
            stage(
                f"pod-{life}", "Pod", [*running, among(LIFE, life)], status=_ended(reason, code), delay=again
            )
            for life, (reason, code) in _ENDS.items()
        ),
        stage(
            "pod-completes",
            "Pod",
            [*running, owned_by_job, not_among(LIFE, _NEVER_READY, *_ENDS, *faithful.LIVES)],
            status=_completed(),
            delay={"durationFrom": annotation("runs-for")},
        ),
        stage(
            "pod-goes",
            "Pod",
            [present(DELETED), absent(".metadata.finalizers"), not_among(LIFE, *faithful.LIVES)],
            delay={"durationFrom": {"expressionFrom": DELETED}},
        ),
        *faithful.stages(),
    ]


def _unready_nodes() -> list[dict[str, Any]]:
    ready = '.status.conditions.[] | select(.type == "Ready") | .status'
    return [not_among(ready, "True"), not_among(_READY_ANNOTATION, "false")]


def _conditions(*, ready: bool) -> str:
    states = {
        "Initialized": True,
        "PodReadyToStartContainers": True,
        "ContainersReady": ready,
        "Ready": ready,
    }
    return "conditions:\n" + "".join(
        f'- {{type: {name}, status: "{state}", lastTransitionTime: {{{{ $now | Quote }}}}}}\n'
        for name, state in states.items()
    )


def _started(*, ready: bool) -> str:
    return f"""{_POD_HEAD}
{_conditions(ready=ready)}
{_INIT_CONTAINERS}
containerStatuses:
{{{{ range .spec.containers }}}}
- name: {{{{ .name | Quote }}}}
  image: {{{{ .image | Quote }}}}
  ready: {str(ready).lower()}
  started: true
  restartCount: 0
  state: {{running: {{startedAt: {{{{ $now | Quote }}}}}}}}
{{{{ end }}}}
"""


def _ended(reason: str, code: int) -> str:
    """The containers ended once more and wait for the next try."""
    return f"""
{{{{ $now := Now }}}}
{_conditions(ready=False)}
containerStatuses:
{{{{ range .status.containerStatuses }}}}
- name: {{{{ .name | Quote }}}}
  image: {{{{ .image | Quote }}}}
  ready: false
  started: false
  restartCount: {{{{ add .restartCount 1 }}}}
  state: {{waiting: {{reason: CrashLoopBackOff}}}}
  lastState: {{terminated: {{exitCode: {code}, reason: {reason}, finishedAt: {{{{ $now | Quote }}}}}}}}
{{{{ end }}}}
"""


def _completed() -> str:
    return """
{{ $now := Now }}
phase: Succeeded
containerStatuses:
{{ range .spec.containers }}
- name: {{ .name | Quote }}
  image: {{ .image | Quote }}
  ready: false
  started: false
  restartCount: 0
  state: {terminated: {exitCode: 0, reason: Completed, finishedAt: {{ $now | Quote }}}}
{{ end }}
"""
