#!/bin/sh
# Becomes systemd, as process 1 of namespaces of its own, on a root file system whose changes stay in memory.
# Arguments: an empty directory; the checkout; the prefix of the Python that runs pilotfish; its site-packages; kernels;
# "" or "bare": then no pilotfish is installed; folders, each with the place where it is seen. LOWER: the root file system,
# by default that of this machine.
set -e
scratch=$1
mount --make-rprivate /
mount -t tmpfs -o mode=755 tmpfs "$scratch"
mkdir "$scratch/changes" "$scratch/work" "$scratch/root"
mount -t overlay overlay -o "lowerdir=${LOWER:-/},upperdir=$scratch/changes,workdir=$scratch/work" "$scratch/root"
cd "$scratch/root"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys # no setting of the kernel is changed
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs dev
for name in null zero full random urandom tty; do
    : >"dev/$name"
    mount --bind "/dev/$name" "dev/$name"
done
ln -s /proc/self/fd dev/fd
mkdir dev/pts dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=1777 tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs -o mode=1777 tmpfs tmp
ip link set lo up

if [ "$6" != bare ]; then
    mkdir -p opt/pilotfish/packages opt/pilotfish/python opt/pilotfish/libraries
    mkdir opt/pilotfish/packages/pilotfish
    mount --bind "$2" opt/pilotfish/packages/pilotfish
    mount --bind "$3" opt/pilotfish/python
    mount --bind "$4" opt/pilotfish/libraries
    cat >usr/bin/pilotfish <<'SCRIPT'
#!/bin/sh
export PYTHONPATH=/opt/pilotfish/packages:/opt/pilotfish/libraries LD_LIBRARY_PATH=/opt/pilotfish/python/lib
exec /opt/pilotfish/python/bin/python3 -P -m pilotfish.cli "$@"
SCRIPT
    chmod 755 usr/bin/pilotfish
fi
if [ "$6" != bare ]; then
    mkdir -p var/cache/pilotfish/kernels
    cp -a "$5"/. "var/cache/pilotfish/kernels/$(basename "$5")"
fi
shift 6
while [ $# -gt 1 ]; do
    mkdir -p ".$2"
    mount --bind "$1" ".$2"
    shift 2
done
for unit in systemd-udevd systemd-sysctl systemd-modules-load systemd-remount-fs systemd-networkd systemd-resolved; do
    ln -sf /dev/null "etc/systemd/system/$unit.service"
done
for unit in dev-hugepages.mount sys-kernel-debug.mount sys-kernel-tracing.mount sys-fs-fuse-connections.mount mariadb.socket; do
    ln -sf /dev/null "etc/systemd/system/$unit"
done
mkdir old
pivot_root . old
umount -l /old
rmdir /old
exec env -i container=pilotfish-test PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    /usr/lib/systemd/systemd --unit=basic.target --show-status=false
