#!/bin/sh
# Boots a VM through the real path and shows where the time went. Usage: demo.sh [--json]
# Sets the machine up and builds the guest first, if that has not been done.
set -eu

root=$(cd "$(dirname "$0")/.." && pwd)
sh "$root/scripts/setup.sh"
sh "$root/scripts/guest/build.sh"
exec "$root/node_modules/.bin/node" -C @virtwire/source "$root/scripts/demo/main.ts" "$@"
