#!/bin/sh
# Runs a command as a launcher pod's compute container sees it: its own /run with the pod's directories from ROOT, a
# user qemu (107), no other capability than to bind low ports. Called inside fresh namespaces. Usage: sandbox.sh ROOT CMD...
set -eu
root=$1
shift
mount --make-rprivate /
mount -t tmpfs tmpfs /run
for dir in kubevirt kubevirt-private kubevirt-ephemeral-disks libvirt; do
  mkdir -p "/run/$dir" "$root/$dir"
  chown 107:107 "$root/$dir"
  mount --bind "$root/$dir" "/run/$dir"
done
for file in passwd group; do
  cp "/etc/$file" "$root/$file"
  grep -q '^qemu:' "$root/$file" || case $file in
    passwd) echo 'qemu:x:107:107::/:/bin/false' >>"$root/$file" ;;
    group) echo 'qemu:x:107:' >>"$root/$file" ;;
  esac
  mount --bind "$root/$file" "/etc/$file"
done
ip link set lo up
cd /
exec setpriv --reuid 107 --regid 107 --clear-groups --no-new-privs \
  --inh-caps=-all,+net_bind_service --ambient-caps=-all,+net_bind_service --bounding-set=-all,+net_bind_service \
  env -i "PATH=$PATH" XDG_CACHE_HOME=/var/run/kubevirt-private XDG_CONFIG_HOME=/var/run/kubevirt-private \
  XDG_RUNTIME_DIR=/var/run HOME=/ POD_NAME=virt-launcher-test "$@"
