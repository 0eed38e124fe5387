#!/bin/sh
# Builds the native programs of a launcher pod, static and stripped: virt-launcher-monitor.
# Usage: build.sh [OUT_DIR] (default .cache/native beside the checkout's package.json). CC: the C compiler, default cc.
# Nothing is built when what is there was made from the same sources with the same compiler.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$(cd "$here/../.." && pwd)/.cache/native}
cc=${CC:-cc}
fail() { echo "native: $*" >&2; exit 1; }
command -v "$cc" >/dev/null || fail "no C compiler ($cc): install gcc and libc6-dev"

stamp() { # one line that names everything the programs are made of
  { cat "$here/build.sh" "$here"/*/*.[ch]; "$cc" --version; } | sha256sum | cut -d' ' -f1
}

build() { # build PROGRAM: all C files of its directory; compiled there, since log lines name the file
  cd "$here/$1"
  "$cc" -std=gnu17 -D_GNU_SOURCE -Os -static -s -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion \
    -ffunction-sections -fdata-sections -fstack-protector-strong -Wl,--gc-sections,-z,noexecstack \
    -o "$out/$1.$$" *.c|| { rm -f "$out/$1.$$"; fail "$1 does not compile: see above"; }
  mv "$out/$1.$$" "$out/$1"
  echo "native: $1, $(wc -c <"$out/$1") bytes"
}

wanted=$(stamp)
if [ -x "$out/virt-launcher-monitor" ] && [ "$(cat "$out/stamp" 2>/dev/null)" = "$wanted" ]; then
  touch "$out/virt-launcher-monitor" # newer than its sources, for those who look no closer
  exit 0
fi
mkdir -p "$out"
build virt-launcher-monitor
echo "$wanted" >"$out/stamp"
