#!/bin/sh
# Measures a VM's start, then what the packages measure of themselves. Usage: bench.sh [PACKAGE...]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
sh "$root/scripts/setup.sh" --with-tests
sh "$root/scripts/guest/build.sh"
cd "$root"
failed=no
[ $# -gt 0 ] || set -- virtwire $(ls packages | grep -v '^virtwire$')
for package in "$@"; do
  bench=packages/$package/bench/main.ts
  [ -f "$bench" ] || continue
  echo "== $package"
  node_modules/.bin/node -C @virtwire/source "$bench" || failed=yes
done
[ "$failed" = no ]
