#!/bin/sh
# Runs in namespaces of its own (mounts, processes, network, names, control groups), and turns them into a machine
# with systemd as its first process. What it writes is gone with it: nothing of the machine around it is changed.
set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /mnt
mkdir /mnt/dev
mount -t tmpfs tmpfs /mnt/dev
for name in null zero full random urandom tty; do
    : > "/mnt/dev/$name"
    mount --bind "/dev/$name" "/mnt/dev/$name"
done
: > /mnt/dev/console
mount --bind /dev/null /mnt/dev/console
mkdir /mnt/dev/shm /mnt/dev/pts
mount -t tmpfs tmpfs /mnt/dev/shm
mount -t devpts -o newinstance,ptmxmode=666 devpts /mnt/dev/pts
ln -s pts/ptmx /mnt/dev/ptmx
ln -s /proc/self/fd /mnt/dev/fd
mount --move /mnt/dev /dev
for directory in etc var tmp usr/local; do
    mkdir -p "/mnt/$directory/upper" "/mnt/$directory/work"
    mount -t overlay overlay -o "lowerdir=/$directory,upperdir=/mnt/$directory/upper,workdir=/mnt/$directory/work" "/$directory"
done
mount -t proc proc /proc
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
umount -R /sys
mount -t sysfs -o ro sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /run
# Nothing of the start of a real machine happens here but the journal.
rm -rf /etc/fstab /etc/systemd/system/*.wants
: > /etc/machine-id
for unit in /lib/systemd/system/sysinit.target.wants/* /lib/systemd/system/sockets.target.wants/* \
    /lib/systemd/system/local-fs.target.wants/* systemd-remount-fs.service systemd-journal-flush.service; do
    unit=${unit##*/}
    case $unit in
        systemd-journald*) ;;
        *) ln -sf /dev/null "/etc/systemd/system/$unit" ;;
    esac
done
ip link set lo up
exec env -i container=bolide PATH="$PATH" "$1" --system --unit=sockets.target --show-status=no --log-target=null
