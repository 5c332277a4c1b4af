"""Lives of pods write by write as a kubelet of 1.36 writes them, for tests of what reads pods' health.

They cost the API server three to ten times the writes of the cheap ones, so fleets do without them. Values of
the annotation `localcluster.reberth.dev/life`:

    faithful               starts in four writes, and ends before its grace is over, with a terminal phase
    faithful-stubborn      ends only when its grace is over, killed
    faithful-never-ready   runs, but is never Ready
    faithful-crash-loop    ends with code 1 a second after each start, and is started again after a back-off
    faithful-oom-killed    likewise, killed for its memory
    faithful-rejected      is refused by its node: Failed, without conditions
    faithful-evicted       is evicted by its node, which is short of memory: Failed, and it stays

`runs-for` is the time until an end or an eviction (default 1s), `restarts-every` replaces the back-off.
"""

from typing import Any

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

PLAIN = "faithful"
STUBBORN, NEVER_READY, REJECTED, EVICTED = (
    f"{PLAIN}-{kind}" for kind in ("stubborn", "never-ready", "rejected", "evicted")
)
_LOOPS = {f"{PLAIN}-crash-loop": ("Error", 1), f"{PLAIN}-oom-killed": ("OOMKilled", 137)}
LIVES = (PLAIN, STUBBORN, NEVER_READY, REJECTED, EVICTED, *_LOOPS)

_CONTAINERS = ".status.containerStatuses"
_WAITING = f"{_CONTAINERS}.[].state.waiting.reason"
_STATE_RUNNING = f"{_CONTAINERS}.[].state.running.startedAt"
_STATE_TERMINATED = f"{_CONTAINERS}.[].state.terminated.finishedAt"
_RESTARTS = f"{_CONTAINERS}.[0].restartCount | tostring"
_SANDBOX = '.status.conditions.[] | select(.type == "PodReadyToStartContainers") | .status'
# 10 s, twice as long each time, 5 min at most. kubelet's own wait is up to half as long again.
_BACK_OFF = (
    f'.metadata.annotations["{PREFIX}restarts-every"] // '
    f'(([10 * pow(2; ({_CONTAINERS}[0].restartCount // 1) - 1), 300] | min | tostring) + "s")'
)
_BACK_OFF_TEXT = '(list "10s" "20s" "40s" "1m20s" "2m40s" "5m0s")'
_REJECTION = (
    "Pod was rejected: Node didn't have enough resource: cpu, requested: 64000, used: 0, capacity: 2000"
)
_EVICTION = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
_UNREADY = "ContainersNotReady"
_HOST = "192.0.2.254"  # kwok's nodes have no addresses
_HEAD = "{{ $now := Now }}\n"


def stages() -> list[dict[str, Any]]:
    return [*_starts(), *_loops(), *_ends(), *_deletions()]


def _starts() -> list[dict[str, Any]]:
    pending = [absent(DELETED), among(PHASE, "Pending")]
    creating = [*pending, among(LIFE, *LIVES), among(_WAITING, "ContainerCreating")]
    begun = {"durationMilliseconds": 100, "durationFrom": annotation("starts-after")}
    return [
        _pod(
            "creates",
            [*pending, among(LIFE, *LIVES), not_among(LIFE, REJECTED), absent(_CONTAINERS)],
            _created(),
            20,
        ),
        _pod("has-sandbox", [*creating, among(_SANDBOX, "False")], _sandboxed(), 400),
        _pod(
            "runs",
            [*creating, among(_SANDBOX, "True"), not_among(LIFE, NEVER_READY)],
            _running(ready=True),
            begun,
        ),
        _pod(
            "hangs",
            [*creating, among(_SANDBOX, "True"), among(LIFE, NEVER_READY)],
            _running(ready=False),
            begun,
        ),
        _pod("is-rejected", [*pending, among(LIFE, REJECTED), absent(".status.reason")], _rejected(), 20),
    ]


def _loops() -> list[dict[str, Any]]:
    """An end, a wait that shows its reason for a moment only, and a start, which counts as restart."""
    running = [absent(DELETED), among(PHASE, "Running")]
    looping, first = [*running, among(LIFE, *_LOOPS)], among(_RESTARTS, "0")
    ended = [*looping, present(_STATE_TERMINATED)]
    lasts = {"durationMilliseconds": 1000, "durationFrom": annotation("runs-for")}
    ends = (
        _pod(f"{life}-ends", [*running, among(LIFE, life), present(_STATE_RUNNING)], _crashed(*end), lasts)
        for life, end in _LOOPS.items()
    )
    return [
        *ends,
        _pod("restarts-at-once", [*ended, first], _restarted(), 400),
        _pod(
            "backs-off",
            [*ended, not_among(_RESTARTS, "0")],
            _waits(),
            {"durationFrom": {"expressionFrom": _BACK_OFF}},
        ),
        _pod("restarts", [*looping, among(_WAITING, "CrashLoopBackOff")], _restarted(), 130),
    ]


def _ends() -> list[dict[str, Any]]:
    lasts = {"durationMilliseconds": 1000, "durationFrom": annotation("runs-for")}
    running = [absent(DELETED), among(PHASE, "Running"), among(LIFE, EVICTED)]
    return [_pod("is-evicted", running, _evicted(), lasts)]


def _deletions() -> list[dict[str, Any]]:
    deleted = [present(DELETED), absent(".metadata.finalizers")]
    running, finished = among(PHASE, "Running"), among(PHASE, "Succeeded", "Failed")
    polite = [each for each in LIVES if each != STUBBORN]
    killed = {"durationFrom": {"expressionFrom": DELETED}}
    return [
        _pod("ends", [*deleted, running, among(LIFE, *polite)], _over("Succeeded", "Completed", 0), 250),
        _pod("is-killed", [*deleted, running, among(LIFE, STUBBORN)], _over("Failed", "Error", 137), killed),
        _pod("is-gone", [*deleted, finished, among(LIFE, *LIVES)], None, 130),
        _pod("never-was", [*deleted, among(PHASE, "Pending"), among(LIFE, *LIVES)], None, 20),
    ]


def _pod(name: str, selector: list[Any], status: str | None, delay: int | dict[str, Any]) -> dict[str, Any]:
    after = {"durationMilliseconds": delay} if isinstance(delay, int) else delay
    return stage(f"faithful-{name}", "Pod", selector, status=status, delay=after)


def _created() -> str:
    return f"""{_HEAD}
observedGeneration: {{{{ or .metadata.generation 1 }}}}
startTime: {{{{ $now | Quote }}}}
hostIP: {_HOST}
hostIPs: [{{ip: {_HOST}}}]
conditions:
{_condition("PodReadyToStartContainers", status=False)}
{_condition("Initialized")}
{_unready(_UNREADY)}
{_condition("PodScheduled")}
containerStatuses:
{{{{ range .spec.containers }}}}
- name: {{{{ .name | Quote }}}}
  image: {{{{ .image | Quote }}}}
  imageID: ""
  ready: false
  started: false
  restartCount: 0
  state: {{waiting: {{reason: ContainerCreating}}}}
  lastState: {{}}
{{{{ end }}}}
"""


def _sandboxed() -> str:
    return f"{_HEAD}\nconditions:\n{_condition('PodReadyToStartContainers')}\n"


def _running(*, ready: bool) -> str:
    conditions = f"conditions:\n{_ready()}" if ready else ""
    return f"""{_HEAD}
{{{{ $uid := or .metadata.uid "" }}}}
phase: Running
{{{{ with PodIPWith .spec.nodeName (or .spec.hostNetwork false) $uid .metadata.name .metadata.namespace }}}}
podIP: {{{{ . | Quote }}}}
podIPs: [{{ip: {{{{ . | Quote }}}}}}]
{{{{ end }}}}
{conditions}
{_containers("{running: {startedAt: {{ $now | Quote }}}}", "{}", ready=ready, started=True)}
"""


def _crashed(reason: str, code: int) -> str:
    state = _terminated(reason, code)
    return f"""{_HEAD}
conditions:
{_unready(_UNREADY)}
{_containers(state, "{{ .lastState | toJson }}")}
"""


def _waits() -> str:
    place = "(int (min (sub .restartCount 1) 5))"
    message = (
        f"back-off {{{{ index {_BACK_OFF_TEXT} {place} }}}} restarting failed container={{{{ .name }}}} pod="
        "{{ $pod.metadata.name }}_{{ $pod.metadata.namespace }}({{ $pod.metadata.uid }})"
    )
    state = f'{{waiting: {{reason: CrashLoopBackOff, message: "{message}"}}}}'
    return f"""{_HEAD}
{{{{ $pod := . }}}}
{_containers(state, "{terminated: {{ .state.terminated | toJson }}}")}
"""


def _restarted() -> str:
    ended = "{terminated: {{ .state.terminated | toJson }}}"
    last = f"{{{{ if .state.terminated }}}}{ended}{{{{ else }}}}{{{{ .lastState | toJson }}}}{{{{ end }}}}"
    running = "{running: {startedAt: {{ $now | Quote }}}}"
    return f"""{_HEAD}
conditions:
{_ready()}
{_containers(running, last, ready=True, started=True, restarts="{{ add .restartCount 1 }}")}
"""


def _rejected() -> str:
    return f"""{_HEAD}
observedGeneration: {{{{ or .metadata.generation 1 }}}}
phase: Failed
reason: OutOfcpu
message: "{_REJECTION}"
startTime: {{{{ $now | Quote }}}}
"""


def _evicted() -> str:
    return f"""{_HEAD}
phase: Failed
reason: Evicted
message: {_EVICTION!r}
conditions:
{_condition("DisruptionTarget", reason="TerminationByKubelet", message=_EVICTION)}
{_condition("PodReadyToStartContainers", status=False)}
{_unready("PodFailed", message=None)}
{_containers(_terminated("Error", 137), "{{ .lastState | toJson }}")}
"""


def _over(phase: str, reason: str, code: int) -> str:
    initialized = _condition("Initialized", reason="PodCompleted") if phase == "Succeeded" else ""
    return f"""{_HEAD}
phase: {phase}
observedGeneration: {{{{ or .metadata.generation 1 }}}}
conditions:
{_condition("PodReadyToStartContainers", status=False)}
{initialized}
{_unready("PodCompleted" if phase == "Succeeded" else "PodFailed", message=None)}
{_containers(_terminated(reason, code), "{{ .lastState | toJson }}")}
"""


def _terminated(reason: str, code: int) -> str:
    started = "{{ with .state.running }}{{ .startedAt }}{{ end }}"
    times = f'startedAt: "{started}", finishedAt: {{{{ $now | Quote }}}}'
    what = f"exitCode: {code}, reason: {reason}, containerID: {{{{ .containerID | Quote }}}}"
    return f"{{terminated: {{{what}, {times}}}}}"


def _containers(
    state: str,
    last: str,
    *,
    ready: bool = False,
    started: bool = False,
    restarts: str = "{{ .restartCount }}",
) -> str:
    """All containers alike; the list is replaced as a whole, so that every field is written each time."""
    return f"""containerStatuses:
{{{{ range .status.containerStatuses }}}}
- name: {{{{ .name | Quote }}}}
  image: {{{{ .image | Quote }}}}
  imageID: "sha256:0"
  containerID: "containerd://{{{{ .name }}}}"
  ready: {str(ready).lower()}
  started: {str(started).lower()}
  restartCount: {restarts}
  state: {state}
  lastState: {last}
{{{{ end }}}}"""


def _ready() -> str:
    return f"{_condition('Ready')}\n{_condition('ContainersReady')}"


def _unready(reason: str, *, message: str | None = "containers") -> str:
    names = "{{ range $i, $c := .spec.containers }}{{ if $i }} {{ end }}{{ $c.name }}{{ end }}"
    named = f"containers with unready status: [{names}]"
    return "\n".join(
        _condition(name, status=False, reason=reason, message=named if message else None)
        for name in ("Ready", "ContainersReady")
    )


def _condition(
    name: str, *, status: bool = True, reason: str | None = None, message: str | None = None
) -> str:
    """Conditions are merged by their type: what is not to stay has to be null."""
    why = f"reason: {reason or 'null'}, message: {_quote(message)}"
    times = "lastTransitionTime: {{ $now | Quote }}, observedGeneration: {{ or .metadata.generation 1 }}"
    return f'- {{type: {name}, status: "{status}", {why}, {times}}}'


def _quote(text: str | None) -> str:
    return f'"{text}"' if text else "null"
