#!/bin/sh
# Runs our handler and our launcher against every release of KubeVirt, both ways. Reports: reports/compat.
# Usage: compat.sh [OPTIONS OF virtwire compat matrix]
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
[ -x node_modules/.bin/node ] || sh scripts/setup.sh
mkdir -p reports/compat
exec node_modules/.bin/node -C @virtwire/source packages/compat/src/main.ts matrix \
  --html reports/compat/matrix.html --junit reports/compat/junit.xml --json reports/compat/matrix.json "$@"
