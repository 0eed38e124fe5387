#!/bin/sh
# `npm test`: sets the machine up, then runs every check and every test. Ends with `N passed, N failed, N skipped`.
set -eu
cd "$(dirname "$0")/.."
sh scripts/setup.sh --with-tests
sh scripts/guest/build.sh
exec node_modules/.bin/node -C @virtwire/source scripts/ci/run-all.ts
