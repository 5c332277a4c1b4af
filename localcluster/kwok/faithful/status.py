"""Parts of the statuses that a kubelet writes, as templates of kwok.

Conditions are merged by their type, so what is not to stay has to be null. A list of containers is replaced
as a whole, so every field is written each time.
"""

from localcluster.kwok.faithful.lives import MAIN

HEAD = "{{ $now := Now }}\n"
NOT_READY, POD_FAILED, POD_COMPLETED = "ContainersNotReady", "PodFailed", "PodCompleted"
RUNNING = "{running: {startedAt: {{ $now | Quote }}}}"
SAME_LAST = "{{ .lastState | toJson }}"
ENDED_AS_LAST = (
    "{{ if .state.terminated }}{terminated: {{ .state.terminated | toJson }}}"
    "{{ else }}{{ .lastState | toJson }}{{ end }}"
)
ONE_MORE = "{{ add .restartCount 1 }}"
OBSERVED = "observedGeneration: {{ or .metadata.generation 1 }}"
ADDRESS = """
{{ $uid := or .metadata.uid "" }}
{{ with PodIPWith .spec.nodeName (or .spec.hostNetwork false) $uid .metadata.name .metadata.namespace }}
podIP: {{ . | Quote }}
podIPs: [{ip: {{ . | Quote }}}]
{{ end }}
"""
_BACK_OFF_TEXT = '(list "10s" "20s" "40s" "1m20s" "2m40s" "5m0s")'


def conditions(*parts: str) -> str:
    return "\n".join(("conditions:", *parts))


def ready() -> str:
    return f"{condition('Ready')}\n{condition('ContainersReady')}"


def unready(reason: str) -> str:
    message = _name("containers with unready status", "containers") if reason == NOT_READY else None
    return "\n".join(
        condition(name, status=False, reason=reason, message=message) for name in ("Ready", "ContainersReady")
    )


def uninitialized() -> str:
    message = _name("containers with incomplete status", "initContainers")
    return condition("Initialized", status=False, reason="ContainersNotInitialized", message=message)


def _name(text: str, containers: str) -> str:
    each = f"range $i, $c := .spec.{containers}"
    names = "{{ if $i }} {{ end }}{{ $c.name }}"
    return f"{text}: [{{{{ {each} }}}}{names}{{{{ end }}}}]"


def condition(
    name: str, *, status: bool = True, reason: str | None = None, message: str | None = None
) -> str:
    why = f"reason: {reason or 'null'}, message: {_quote(message)}"
    times = f"lastTransitionTime: {{{{ $now | Quote }}}}, {OBSERVED}"
    return f'- {{type: {name}, status: "{status}", {why}, {times}}}'


def _quote(text: str | None) -> str:
    return f'"{text}"' if text else "null"


def new_containers(reason: str, which: str = MAIN) -> str:
    """Containers that have not begun, of the spec."""
    listed = "containers" if which == MAIN else "initContainers"
    return f"""{which}:
{{{{ range .spec.{listed} }}}}
- name: {{{{ .name | Quote }}}}
  image: {{{{ .image | Quote }}}}
  imageID: ""
  ready: false
  started: false
  restartCount: 0
  state: {{waiting: {{reason: {reason}}}}}
  lastState: {{}}
{{{{ end }}}}"""


def containers(
    state: str,
    last: str = SAME_LAST,
    *,
    which: str = MAIN,
    ready: bool = False,
    started: bool = False,
    restarts: str = "{{ .restartCount }}",
    created: bool = True,
) -> str:
    """All containers alike; those that have been `created` have an ID."""
    ids = 'imageID: "sha256:0"\n  containerID: "containerd://{{ .name }}"' if created else 'imageID: ""'
    return f"""{{{{ $pod := . }}}}
{which}:
{{{{ range .status.{which} }}}}
- name: {{{{ .name | Quote }}}}
  image: {{{{ .image | Quote }}}}
  {ids}
  ready: {str(ready).lower()}
  started: {str(started).lower()}
  restartCount: {restarts}
  state: {state}
  lastState: {last}
{{{{ end }}}}"""


def terminated(reason: str, code: int) -> str:
    """The end of a container that runs."""
    started = "{{ with .state.running }}{{ .startedAt }}{{ end }}"
    times = f'startedAt: "{started}", finishedAt: {{{{ $now | Quote }}}}'
    what = f"exitCode: {code}, reason: {reason}, containerID: {{{{ .containerID | Quote }}}}"
    return f"{{terminated: {{{what}, {times}}}}}"


def waits(reason: str, message: str) -> str:
    return f"{{waiting: {{reason: {reason}, message: {{{{ {message} | Quote }}}}}}}}"


def backs_off(free_restarts: int) -> str:
    """Wait for the next start; so many restarts came at once and made the back-off no longer."""
    place = f"(int (min (sub .restartCount {free_restarts}) 5))"
    text = '"back-off %s restarting failed container=%s pod=%s_%s(%s)"'
    pod = "$pod.metadata.name $pod.metadata.namespace $pod.metadata.uid"
    return waits("CrashLoopBackOff", f"(printf {text} (index {_BACK_OFF_TEXT} {place}) .name {pod})")
