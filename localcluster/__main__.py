"""python -m localcluster up|down|status|node|record|env|kubeconfig|build|forward."""

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path

from localcluster import components, manifests, state_dir
from localcluster.build import build, products
from localcluster.cluster import end_all
from localcluster.errors import LocalClusterError
from localcluster.host import processes
from localcluster.load_balancer import LoadBalancer
from localcluster.realnodes import programs, real_node, real_nodes
from localcluster.recorder import recording
from localcluster.virtualnodes import virtual_nodes

_DEFAULT_NAME = "reberth"
_LAST_PORT = 65535


def main() -> int:
    arguments = _parser().parse_args()
    try:
        asyncio.run(arguments.command(arguments))
    except (LocalClusterError, ValueError, OSError) as error:
        print(f"localcluster: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("localcluster: interrupted; `python -m localcluster down` cleans up", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m localcluster", description="Run a real Kubernetes control plane on this machine."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    up = _command(commands, "up", _up, "start a cluster and wait until it is ready")
    up.add_argument("--nodes", type=_count, default=0, metavar="N", help="add N Ready nodes")
    up.add_argument(
        "--real-nodes",
        type=_count,
        default=0,
        metavar="N",
        help="start N nodes with a real kubelet beside them (Linux, root)",
    )
    up.add_argument(
        "--virtual-nodes",
        type=_count,
        default=0,
        metavar="N",
        help="start N such nodes in virtual machines, with cgroup v2 and PSI (Linux, root, x86_64)",
    )
    up.add_argument(
        "--zones", type=_some, default=3, metavar="N", help="spread them over N zones (default 3)"
    )
    up.add_argument("--cpu", default="8", help="cpu of each node (default 8)")
    up.add_argument("--memory", default="32Gi", help="memory of each node (default 32Gi)")
    up.add_argument("--pods", type=_some, default=110, help="pods of each node (default 110)")
    up.add_argument(
        "--kubernetes", metavar="VERSION", help=f"one of {', '.join(products.KUBERNETES_VERSIONS)}"
    )
    up.add_argument(
        "--without",
        action="append",
        default=[],
        choices=components.ALL,
        help="do not start this component; may be repeated",
    )
    up.add_argument("--scheduler-config", type=Path, metavar="FILE", help="a KubeSchedulerConfiguration")
    up.add_argument(
        "--apply",
        type=Path,
        action="append",
        default=[],
        metavar="FOLDER",
        help="apply the manifests of this folder; may be repeated",
    )
    down = _command(commands, "down", _down, "stop a cluster and delete its folder")
    down.add_argument("--all", action="store_true", help="every cluster of this user")
    status = _command(commands, "status", _status, "list the processes with their CPU time and memory")
    status.add_argument("-o", dest="output", choices=("table", "json"), default="table")
    _command(commands, "env", _env, "print the shell command that sets KUBECONFIG")
    _command(commands, "kubeconfig", _kubeconfig, "print the administrator's kubeconfig")
    node = _command(commands, "node", _node, "do to a real or virtual node what happens to nodes")
    node.add_argument("action", choices=real_node.ACTIONS)
    node.add_argument("node", metavar="NODE", help="such as real-1 or virtual-1")
    record = _command(
        commands, "record", _record, "record every change of pods, nodes and Events until stopped"
    )
    record.add_argument("file", type=Path, metavar="FILE", help="written at the end, as JSON lines")
    forward = commands.add_parser(
        "forward", help="forward connections to several servers in turn, as a Service does"
    )
    forward.add_argument("--port", type=_port, required=True, help="port on loopback")
    forward.add_argument("backends", nargs="+", metavar="HOST:PORT", type=_read_address)
    forward.set_defaults(command=_forward)
    builder = commands.add_parser("build", help="build the programs of a cluster without starting one")
    builder.set_defaults(command=_build)
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, run: object, text: str
) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text)
    command.add_argument(
        "--name", default=_DEFAULT_NAME, help=f"name of the cluster (default {_DEFAULT_NAME})"
    )
    command.set_defaults(command=run)
    return command


async def _up(arguments: argparse.Namespace) -> None:
    if _is_up(arguments.name):
        _say(f"{arguments.name}: is already running and is left unchanged")
        return await _env(arguments)
    real_nodes.refuse(arguments.real_nodes)
    virtual_nodes.refuse(arguments.virtual_nodes, beside=arguments.real_nodes)
    await _build(arguments)
    started = time.monotonic()
    await state_dir.remove(arguments.name)  # leftovers of a failed start
    made = state_dir.create(
        arguments.name,
        kubernetes=arguments.kubernetes,
        without=arguments.without,
        scheduler_configuration=arguments.scheduler_config,
        real=arguments.real_nodes,
        virtual=arguments.virtual_nodes,
    )
    try:
        await made.up()
        _say(
            f"{arguments.name}: Kubernetes {made.design.kubernetes} "
            f"ready in {time.monotonic() - started:.1f} s"
        )
        if arguments.nodes:
            shape = {"cpu": arguments.cpu, "memory": arguments.memory, "pods": arguments.pods}
            await made.add_nodes(arguments.nodes, zones=arguments.zones, **shape)
            _say(f"{arguments.name}: {arguments.nodes} nodes Ready after {time.monotonic() - started:.1f} s")
        for folder in arguments.apply:
            async with made.client() as client:
                applied = await manifests.apply(client, folder)
            _say(f"{arguments.name}: applied {len(applied)} objects of {folder}")
    except BaseException:
        await end_all(made.folder)
        _say(f"{arguments.name}: failed to start; see the logs in {made.folder / 'logs'}")
        raise
    return await _env(arguments)


def _is_up(name: str) -> bool:
    return bool(processes.find(state_dir.folder_of(name)))


async def _build(arguments: argparse.Namespace) -> None:
    kubernetes = products.kubernetes(getattr(arguments, "kubernetes", None))
    await asyncio.to_thread(build.programs, products.ETCD, products.KWOK, kubernetes)
    virtual = getattr(arguments, "virtual_nodes", 0)
    if virtual or getattr(arguments, "real_nodes", 0):
        await asyncio.to_thread(programs.provide, kubernetes.version)
    if virtual:
        await asyncio.to_thread(virtual_nodes.provide)


async def _forward(arguments: argparse.Namespace) -> None:
    async with LoadBalancer(arguments.backends, port=arguments.port):
        await asyncio.Event().wait()


def _count(text: str, *, least: int = 0) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least {least}")
    return int(text)


def _some(text: str) -> int:
    return _count(text, least=1)


def _port(text: str) -> int:
    port = _some(text)
    if port > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a valid port: the highest is {_LAST_PORT}")
    return port


def _read_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form HOST:PORT")
    return host, _port(port)


async def _down(arguments: argparse.Namespace) -> None:
    for name in state_dir.names() if arguments.all else [arguments.name]:
        was_there = name in state_dir.names() or _is_up(name)
        await state_dir.remove(name)
        _say(f"{name}: {'deleted' if was_there else 'does not exist'}")


async def _status(arguments: argparse.Namespace) -> None:
    found = [_usage(running) for running in processes.find(state_dir.folder_of(arguments.name))]
    if not found:
        state_dir.load(arguments.name)  # which says so if there is none
    if arguments.output == "json":
        print(json.dumps(found, indent=1))
        return
    print(f"{'COMPONENT':<26}{'PID':>8}{'CPU s':>9}{'RSS MiB':>9}{'PEAK MiB':>10}")
    for row in found:
        line = f"{row['name']:<26}{row['pid']:>8}{row['cpuSeconds']:>9.1f}"
        print(f"{line}{row['rssMiB']:>9}{row['peakMiB']:>10}")


def _usage(running: processes.Running) -> dict[str, str | int | float]:
    status = dict(line.split(":", 1) for line in Path(f"/proc/{running.pid}/status").read_text().splitlines())
    times = Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return {
        "name": running.name,
        "pid": running.pid,
        "cpuSeconds": sum(map(int, times)) / 100,
        "rssMiB": int(status["VmRSS"].split()[0]) // 1024,
        "peakMiB": int(status["VmHWM"].split()[0]) // 1024,
    }


async def _node(arguments: argparse.Namespace) -> None:
    node = state_dir.load(arguments.name).node(arguments.node)
    act = getattr(node, arguments.action.replace("-", "_"), None)
    if act is None:
        raise LocalClusterError(f"{arguments.action} is not possible with a virtual node")
    done = act()
    if done is not None:
        await done


async def _record(arguments: argparse.Namespace) -> None:
    async with recording(state_dir.load(arguments.name)) as recorder:
        _say(f"{arguments.name}: recording; stop with Ctrl-C")
        try:
            await asyncio.Event().wait()
        finally:
            recorder.write(arguments.file)
            _say(f"{arguments.name}: {len(recorder.changes)} changes are in {arguments.file}")


async def _env(arguments: argparse.Namespace) -> None:
    print(f"export KUBECONFIG={state_dir.load(arguments.name).kubeconfig}")


async def _kubeconfig(arguments: argparse.Namespace) -> None:
    print(state_dir.load(arguments.name).kubeconfig.read_text(), end="")


def _say(text: str) -> None:
    print(f"localcluster: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
