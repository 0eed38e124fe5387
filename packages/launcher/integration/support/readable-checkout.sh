#!/bin/sh
# Runs a command in the checkout, which user 107 can read there even if it lies below a directory that only root may
# enter, as /root: then it is mounted anew at its very place, with all above it open. SCRATCH is a directory to make for
# that. Called inside a mount namespace of its own. Usage: readable-checkout.sh SCRATCH CMD...
set -eu
scratch=$1
shift
as_qemu() { setpriv --reuid 107 --regid 107 --clear-groups "$@"; }
checkout=$(cd "$(dirname "$0")/../../../.." && pwd)
if ! as_qemu test -x "$checkout"; then
  closed='' rest=$checkout
  while as_qemu test -x "${closed:-/}" && [ "$closed" != "$checkout" ]; do
    rest=${rest#/}
    closed=$closed/${rest%%/*} rest=${rest#"${rest%%/*}"}
  done
  mkdir "$scratch"
  mount --bind "$checkout" "$scratch"
  mount -t tmpfs -o mode=755 tmpfs "$closed"
  mkdir -p "$checkout"
  mount --move "$scratch" "$checkout"
fi
cd "$checkout"
exec "$@"
