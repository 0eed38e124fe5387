#!/bin/sh
# Runs a command as a launcher pod's compute container sees it: its own /run with the pod's directories from ROOT, a
# user qemu (107), no other capability than to bind low ports; with AS_ROOT=yes as root, libvirt's own directories being
# the pod's. Files of the directory PROGRAMS, if set, appear in /usr/bin; those named *-monitor with the file capability
# that the image gives them. Called inside fresh namespaces. Usage: sandbox.sh ROOT CMD...
set -eu
root=$1
shift
mount --make-rprivate /
sh "$(dirname "$0")/readable-checkout.sh" "$root/checkout" true
mount -t tmpfs tmpfs /run
for dir in kubevirt kubevirt-private kubevirt-ephemeral-disks kubevirt-hooks kubevirt-plugin libvirt; do
  mkdir -p "/run/$dir" "$root/$dir"
  chown 107:107 "$root/$dir"
  mount --bind "$root/$dir" "/run/$dir"
done
for file in passwd group; do
  cp "/etc/$file" "$root/$file"
  # libvirt-qemu is what Debian's libvirt looks for before it reads its configuration.
  for user in qemu:107 libvirt-qemu:64055; do
    name=${user%:*} id=${user#*:}
    grep -q "^$name:" "$root/$file" || case $file in
      passwd) echo "$name:x:$id:$id::/:/bin/false" >>"$root/$file" ;;
      group) echo "$name:x:$id:" >>"$root/$file" ;;
    esac
  done
  mount --bind "$root/$file" "/etc/$file"
done
if [ -n "${PROGRAMS:-}" ]; then
  mkdir "$root/programs"
  mount -t tmpfs tmpfs "$root/programs"
  mkdir "$root/programs/work"
  cp -R "$PROGRAMS" "$root/programs/upper"
  chmod 755 "$root/programs/upper"
  mount -t overlay overlay -o "lowerdir=/usr/bin,upperdir=$root/programs/upper,workdir=$root/programs/work" /usr/bin
  for file in /usr/bin/*-monitor; do
    [ ! -e "$file" ] || setcap cap_net_bind_service=+p "$file"
  done
fi
# What a device plugin gives to pods with network cards.
if [ -e /dev/net/tun ]; then
  mknod -m 666 "$root/tun" c 10 200
  mount --bind "$root/tun" /dev/net/tun
fi
# Where libvirt looks for its hooks, writable as in the image.
if [ "${WITH_HOOKS:-no}" = yes ]; then
  mkdir -p /etc/libvirt
  mount -t tmpfs tmpfs /etc/libvirt
  mkdir /etc/libvirt/hooks
  chown 107:107 /etc/libvirt/hooks
fi
ip link set lo up
cd /
echo "exec $(date +%s%3N)" >&2
if [ "${AS_ROOT:-no}" = yes ]; then
  for dir in /var/lib/libvirt /var/cache/libvirt /var/log/libvirt /etc/libvirt; do
    mkdir -p "$dir"
    mount -t tmpfs tmpfs "$dir"
  done
  mkdir -p /var/log/libvirt/qemu
  # Where /dev/kvm opens but does not work, libvirt would probe QEMU again at every look.
  if [ -e /dev/kvm ]; then
    : >"$root/no-kvm"
    chmod 000 "$root/no-kvm"
    mount --bind "$root/no-kvm" /dev/kvm
  fi
  exec env -i "PATH=$PATH" HOME=/root POD_NAME=virt-launcher-test "$@"
fi
exec setpriv --reuid 107 --regid 107 --clear-groups --no-new-privs \
  --inh-caps=-all,+net_bind_service --ambient-caps=-all,+net_bind_service --bounding-set=-all,+net_bind_service \
  env -i "PATH=$PATH" XDG_CACHE_HOME=/var/run/kubevirt-private XDG_CONFIG_HOME=/var/run/kubevirt-private \
  XDG_RUNTIME_DIR=/var/run HOME=/ POD_NAME=virt-launcher-test "$@"
