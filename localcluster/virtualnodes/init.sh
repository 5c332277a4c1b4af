#!/bin/busybox sh
# Pid 1 of a virtual node: mounts what a node has, and keeps containerd and kubelet running as systemd would.
export PATH=/usr/bin:/usr/sbin:/bin:/sbin
. /etc/node/node.env
busybox mount -t proc proc /proc
[ -e /bin/mount ] || busybox --install -s /bin
mount -t sysfs sysfs /sys
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount --make-rshared /
# The root of cgroup v2 hands its controllers down, so this process has to leave it.
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir /sys/fs/cgroup/init
echo $$ > /sys/fs/cgroup/init/cgroup.procs
for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
  echo "+$controller" > /sys/fs/cgroup/cgroup.subtree_control
done
hostname "$NAME"
ip link set lo up
ip address add "$ADDRESS" dev eth0
ip link set eth0 up

keep() {
  while :; do "$@"; echo "node: $1 ended with $?"; sleep 0.2; done
}

keep containerd --config=/etc/node/containerd.toml --log-level=warn &
until ctr version > /dev/null 2>&1; do sleep 0.1; done
if [ ! -e /var/lib/images-imported ]; then
  ctr --namespace k8s.io images import --local /images.tar > /dev/null && sync && touch /var/lib/images-imported
fi
keep kubelet --config=/etc/node/kubelet.yaml --kubeconfig=/etc/node/kubeconfig.yaml \
  --hostname-override="$NAME" --node-ip="${ADDRESS%/*}" --cert-dir=/var/lib/kubelet/pki \
  --node-labels="$LABELS" -v=0 &
while :; do sleep 1000; done
