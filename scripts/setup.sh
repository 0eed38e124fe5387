#!/bin/sh
# Makes a Debian 12 or 13 machine ready for virtwire: installs the Debian packages and npm packages that are missing.
# Usage: setup.sh [--with-tests]   (--with-tests: also what only the tests and benchmarks need)
# Changes nothing and needs no network when all is there.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
with_tests=no
case ${1:-} in
  '') ;;
  --with-tests) with_tests=yes ;;
  *) echo "setup: unknown option $1; usage: setup.sh [--with-tests]" >&2; exit 2 ;;
esac

started=$(date +%s)
say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 1; }

missing=
need() { # need PACKAGE FILE...: the package is missing when none of the files exists
  package=$1; shift
  for file in "$@"; do [ -e "$file" ] && return 0; done
  missing="$missing $package"
}

list_missing() {
  missing=
  need libvirt-daemon /usr/sbin/libvirtd /usr/sbin/virtqemud
  need libvirt-daemon-driver-qemu /usr/lib/*/libvirt/connection-driver/libvirt_driver_qemu.so
  # Debian 13 has the log daemon in a package of its own; Debian 12 has it with the other daemon.
  case $missing in *libvirt-daemon*) ;; *) need libvirt-daemon-log /usr/sbin/virtlogd ;; esac
  need qemu-system-x86 /usr/bin/qemu-system-x86_64
  need qemu-utils /usr/bin/qemu-img
  need iproute2 /usr/sbin/ip /sbin/ip
  need nftables /usr/sbin/nft
  need runc /usr/sbin/runc /usr/bin/runc
  need containernetworking-plugins /usr/lib/cni/bridge /opt/cni/bin/bridge
  need xorriso /usr/bin/xorriso /usr/bin/genisoimage
  need busybox-static /var/lib/dpkg/info/busybox-static.list
  need xz-utils /usr/bin/xz
  need libatomic1 /usr/lib/*/libatomic.so.1 # the node that npm installs is linked against it
  [ "$with_tests" = yes ] || return 0
  need python3-libvirt /usr/lib/python3/dist-packages/libvirt.py
  need udhcpc /sbin/udhcpc /usr/sbin/udhcpc
  need isc-dhcp-client /sbin/dhclient /usr/sbin/dhclient
  need dhcpcd-base /sbin/dhcpcd /usr/sbin/dhcpcd
  need systemd /lib/systemd/systemd-networkd
  need iputils-ping /bin/ping /usr/bin/ping
  need procps /sbin/sysctl /usr/sbin/sysctl
  need openssl /usr/bin/openssl
  need chromium /usr/bin/chromium
  need mmdebstrap /usr/bin/mmdebstrap
  need buildah /usr/bin/buildah
  need gcc /usr/bin/gcc # deploy/native
  need libc6-dev /usr/lib/*/libc.a
  need libcap2-bin /usr/sbin/setcap /sbin/setcap
}

install_missing() {
  [ "$(id -u)" = 0 ] || fail "needs root to install:$missing"
  command -v apt-get >/dev/null || fail "this machine has no apt-get; install by hand:$missing"
  # Package scripts must start no daemon; a policy that is already there is kept as it is.
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 1' INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  export DEBIAN_FRONTEND=noninteractive
  log=$(mktemp)
  say 'updating the package lists'
  apt-get update -qq >"$log" 2>&1 || { tail -n 5 "$log" >&2; fail 'apt-get update failed: check /etc/apt/sources.list and the network'; }
  for _ in 1 2; do # what is missing may show only once the rest is there
    say "installing$missing"
    # shellcheck disable=SC2086 # one word per package
    apt-get install -y -q --no-install-recommends $missing 2>&1 | tee "$log" |
      sed -u -n -e 's/^Setting up \([^ ]*\) .*/setup:   \1/p' -e 's/^\(Fetched .*\)/setup: \1/p'
    list_missing
    [ -n "$missing" ] || break
  done
  [ -z "$missing" ] || { tail -n 5 "$log" >&2; fail "still missing after apt-get install:$missing"; }
  rm -f "$log"
}

link_node() { # npm 10 leaves the link out where two packages have a `node`, though one of them is for another machine
  [ ! -x node_modules/.bin/node ] || return 0
  for node in node_modules/node-linux-*/bin/node; do
    [ -x "$node" ] || fail "npm has no Node for this machine ($(uname -m)): only x86_64 and aarch64 are supported"
    ln -sf "../${node#node_modules/}" node_modules/.bin/node
  done
}

install_npm() {
  installed=node_modules/.package-lock.json
  if [ -f "$installed" ] && [ -x node_modules/.bin/node ] && [ ! package-lock.json -nt "$installed" ]; then return 0; fi
  command -v npm >/dev/null || fail 'npm is not installed: install Node.js 20 or newer with npm'
  say 'installing npm packages (npm ci)'
  npm ci --no-audit --no-fund --loglevel=error || fail 'npm ci failed: see above'
  link_node
  touch "$installed"
}

list_missing
[ -z "$missing" ] || install_missing
install_npm
version=$(node_modules/.bin/node --version) || fail 'the node that npm installed does not run: see above'
say "ready ($version, $(( $(date +%s) - started )) s)"
