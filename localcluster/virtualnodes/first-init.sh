#!/bin/busybox sh
# The first program of a virtual node: finds its disk, and goes on there.
PATH=/bin
busybox mount -t proc proc /proc
busybox --install -s /bin
mount -t devtmpfs dev /dev
for module in $(cat /modules/order); do insmod "/modules/$module"; done
until [ -b /dev/vda ]; do sleep 0.1; done
mount -t ext4 /dev/vda /disk
umount /proc
mount --move /dev /disk/dev
exec switch_root /disk /sbin/init
