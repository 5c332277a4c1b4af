"""The Pod Security level that a namespace enforces, and what of a template it forbids.

What a webhook changes in security contexts is not seen. Probes that name a host are not looked at.

kube-apiserver: `k8s.io/pod-security-admission/policy/check_capabilities_baseline.go`:
`CheckCapabilitiesBaseline`;
`k8s.io/pod-security-admission/policy/check_seLinuxOptions.go`: `CheckSELinuxOptions`;
`k8s.io/pod-security-admission/policy/check_sysctls.go`: `CheckSysctls`;
`k8s.io/pod-security-admission/policy/helpers.go`: `relaxPolicyForUserNamespacePod`
"""

import re
from collections.abc import Callable, Iterable, Iterator

from reberth.records import Labels, SecurityContext, TemplateContainer, TemplateSpec

LEVEL = "pod-security.kubernetes.io/enforce"
_VERSION = LEVEL + "-version"
_OLDER = re.compile(r"v1\.(\d|[12]\d|3[0-4])")
"""The versions of the standards that make no difference for pods with user namespaces of their own."""
_BASELINE, _RESTRICTED = "baseline", "restricted"
_NONE = SecurityContext()
_CAPABILITIES = frozenset({
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE",
    "SETFCAP", "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
})  # fmt: skip
_SYSCTLS = frozenset({
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start", "net.ipv4.ping_group_range", "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_wmem",
})  # fmt: skip
_SELINUX = frozenset({None, "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"})
_PROFILES = frozenset({"RuntimeDefault", "Localhost"})
_PROC_MOUNT = "procMount"
_HOST_DISKS = (
    "host_path", "gce_persistent_disk", "aws_elastic_block_store", "iscsi", "rbd", "cinder", "azure_disk",
    "portworx_volume",
)  # fmt: skip
_Check = Callable[[TemplateContainer, SecurityContext], bool]


def find_forbidden(spec: TemplateSpec, labels: Labels) -> str | None:
    """Tell what the level that these labels of a namespace enforce forbids of a pod."""
    level = labels.get(LEVEL)
    if level not in {_BASELINE, _RESTRICTED}:
        return None
    is_apart = spec.host_users is False and not _OLDER.fullmatch(labels.get(_VERSION, ""))
    found = next(_list_below_baseline(spec, may_unmask=is_apart and level == _BASELINE), None)
    if not found and level == _RESTRICTED:
        found = next(_list_below_restricted(spec, may_be_root=is_apart), None)
    return f"Pod Security level {level} forbids {found}" if found else None


def _list_below_baseline(spec: TemplateSpec, *, may_unmask: bool) -> Iterator[str]:
    pod, containers = spec.security_context or _NONE, _list_containers(spec)
    if spec.host_network or spec.host_pid or spec.host_ipc:
        yield "host namespaces"
    if any(each.host_path for each in spec.volumes or ()):
        yield "hostPath volumes"
    if any(port.host_port for each in containers for port in each.ports or ()):
        yield "hostPort"
    if any(each.name not in _SYSCTLS for each in pod.sysctls or ()):
        yield "sysctls"
    for name, is_wrong in _BELOW_BASELINE.items():
        if may_unmask and name == _PROC_MOUNT:
            continue
        if any(is_wrong(context) for context in (pod, *map(_context_of, containers))):
            yield name


def _list_below_restricted(spec: TemplateSpec, *, may_be_root: bool) -> Iterator[str]:
    pod = spec.security_context or _NONE
    if any(getattr(each, name) for each in spec.volumes or () for name in _HOST_DISKS):
        yield "volume types"
    if pod.run_as_user == 0 and not may_be_root:
        yield "runAsUser=0"
    if spec.os and spec.os.name == "windows":
        checks: dict[str, _Check] = {}
    else:
        checks = {
            "allowPrivilegeEscalation != false": _may_escalate,
            "unrestricted capabilities": _keeps_more,
        }
        checks["seccompProfile"] = lambda each, of_pod: _lacks_seccomp(_context_of(each), of_pod)
    if not may_be_root:
        checks["runAsNonRoot != true"] = lambda each, of_pod: _may_be_root(_context_of(each), of_pod)
    for name, is_wrong in checks.items():
        if any(is_wrong(each, pod) for each in _list_containers(spec)):
            yield name


def _list_containers(spec: TemplateSpec) -> list[TemplateContainer]:
    return [*(spec.init_containers or ()), *(spec.containers or ())]


def _context_of(container: TemplateContainer) -> SecurityContext:
    return container.security_context or _NONE


def _adds(context: SecurityContext) -> Iterable[str]:
    return (context.capabilities.add or ()) if context.capabilities else ()


def _is_wrong_selinux(context: SecurityContext) -> bool:
    options = context.se_linux_options
    return options is not None and bool(options.type not in _SELINUX or options.user or options.role)


def _may_escalate(container: TemplateContainer, _pod: SecurityContext) -> bool:
    return _context_of(container).allow_privilege_escalation is not False


def _keeps_more(container: TemplateContainer, _pod: SecurityContext) -> bool:
    capabilities = _context_of(container).capabilities
    if capabilities is None:
        return True
    return "ALL" not in (capabilities.drop or ()) or bool(set(capabilities.add or ()) - {"NET_BIND_SERVICE"})


def _lacks_seccomp(context: SecurityContext, pod: SecurityContext) -> bool:
    profile = context.seccomp_profile or pod.seccomp_profile
    return profile is None or profile.type not in _PROFILES


def _may_be_root(context: SecurityContext, pod: SecurityContext) -> bool:
    own = context.run_as_non_root
    return not (pod.run_as_non_root if own is None else own) or context.run_as_user == 0


_BELOW_BASELINE: dict[str, Callable[[SecurityContext], bool]] = {
    "privileged containers": lambda each: bool(each.privileged),
    "added capabilities": lambda each: not _CAPABILITIES.issuperset(_adds(each)),
    _PROC_MOUNT: lambda each: each.proc_mount not in {None, "", "Default"},
    "seccompProfile": lambda each: (
        each.seccomp_profile is not None and each.seccomp_profile.type not in _PROFILES
    ),
    "appArmorProfile": lambda each: (
        each.app_armor_profile is not None and each.app_armor_profile.type not in _PROFILES
    ),
    "seLinuxOptions": _is_wrong_selinux,
    "hostProcess": lambda each: each.windows_options is not None and bool(each.windows_options.host_process),
}
