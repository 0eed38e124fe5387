#!/bin/sh
# Builds the image of the compatibility suite from this checkout and writes it as an OCI archive.
# Usage: build-image.sh [--image NAME:TAG] OUT.tar        (then: podman load -i OUT.tar, or push it)
# Needs root, mmdebstrap, buildah and the npm packages of this checkout; the network for Debian's and npm's packages only.
set -eu

fail() { echo "build-image: $*" >&2; exit 2; }

root=$(cd "$(dirname "$0")/../.." && pwd)
version=$(sed -n 's/^  "version": "\(.*\)",$/\1/p' "$root/packages/compat/package.json")
image=virtwire/compat:$version
if [ "${1:-}" = --image ]; then
  [ $# -ge 2 ] || fail '--image needs a name'
  image=$2
  shift 2
fi
[ $# = 1 ] || fail 'usage: build-image.sh [--image NAME:TAG] OUT.tar'
case $1 in /*) out=$1 ;; *) out=$PWD/$1 ;; esac
[ -d "$(dirname "$out")" ] || fail "$(dirname "$out") does not exist: name a file in a folder that is there"
for tool in mmdebstrap buildah npm; do command -v $tool >/dev/null || fail "$tool is not installed: scripts/setup.sh --with-tests"; done
[ "$(id -u)" = 0 ] || fail 'mmdebstrap and buildah need root here'
case $(uname -m) in
  x86_64) arch=x64 ;;
  aarch64) arch=arm64 ;;
  *) fail "there is no Node.js for $(uname -m)" ;;
esac
node=$root/node_modules/node-linux-$arch/bin/node
[ -x "$node" ] || fail "$node is missing: npm run setup"

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
trap 'exit 1' INT TERM
say() { echo "build-image: $*" >&2; }

say 'packing our packages'
cd "$root"
packages='shared-proto vm-model libvirt host telemetry kube notify-pipe-proxy launcher handler compat'
NX_DAEMON=false NX_TUI=false node_modules/.bin/nx run-many -t build --projects "$(echo "$packages" | sed 's/[^ ]*/@virtwire\/&/g; s/ /,/g')" >"$context/build.log" 2>&1 || {
  tail -n 20 "$context/build.log" >&2
  fail 'the packages do not build'
}
mkdir "$context/tarballs"
for package in $packages; do
  npm pack --silent --ignore-scripts --pack-destination "$context/tarballs" "./packages/$package" >/dev/null
done

say 'installing them with what they depend on'
app=$context/files/opt/virtwire
mkdir -p "$app"
echo '{"private":true,"type":"module"}' >"$app/package.json"
# Nothing that packages bring runs while the image is built.
(cd "$app" && npm install --silent --ignore-scripts --no-audit --no-fund --omit=dev --omit=optional "$context"/tarballs/*.tgz)

say 'laying out the root file system'
install -D -m 755 "$node" "$context/files/usr/local/bin/node"
ln -s ../../../opt/virtwire/node_modules/.bin/virtwire-compat "$context/files/usr/local/bin/virtwire-compat"
mkdir -p "$context/files/etc" "$context/files/reports" "$context/files/tmp"
chmod 1777 "$context/files/tmp"
printf 'root:x:0:0::/root:/bin/sh\nqemu:x:107:107::/:/bin/false\n' >"$context/files/etc/passwd"
printf 'root:x:0:\nqemu:x:107:\n' >"$context/files/etc/group"
# The suite of this machine; what Node.js and a shell need, without documents.
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
mmdebstrap --quiet --variant=extract --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr \
  --include=base-files,dash,coreutils,libc6,libstdc++6,libgcc-s1,libatomic1 \
  --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-include=/usr/share/doc/*/copyright' \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
  "$suite" "$context/rootfs.tar"

say "building $image"
cp "$root/deploy/compat/Containerfile" "$context/Containerfile"
storage="--root $context/storage --runroot $context/run --storage-driver vfs"
# shellcheck disable=SC2086 # one word per option
buildah $storage build --quiet --isolation chroot --format oci --build-arg "VERSION=$version" --tag "$image" "$context" >/dev/null
rm -f "$out"
# shellcheck disable=SC2086
buildah $storage push --quiet "$image" "oci-archive:$out:$image"
say "$out: $image, $(($(stat -c %s "$out") / 1048576)) MiB"
