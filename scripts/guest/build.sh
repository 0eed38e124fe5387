#!/bin/sh
# Builds the test guest: Debian's cloud kernel (unpacked, not installed) and an initramfs of busybox-static and
# qemu-guest-agent. Usage: build.sh [CACHE_DIR] (default .cache/guest beside the checkout's package.json).
#
# Result in CACHE_DIR:
#   kernel/boot/vmlinuz, kernel/boot/initrd   a kernelBoot container, as a directory
#   disk/disk/guest.img                       a containerDisk, as a directory: a FAT disk that boots by itself
# Nothing is done, and no network is used, when the result is newer than this folder and complete.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
cache=${1:-$(cd "$here/../.." && pwd)/.cache/guest}
say() { echo "guest: $*"; }
fail() { echo "guest: $*" >&2; exit 1; }

stamp() { # one line that names everything the guest is made of
  { cat "$here/build.sh"; find "$here/rootfs" -type f | LC_ALL=C sort | xargs cat; uname -m; } | sha256sum | cut -d' ' -f1
}

is_complete() {
  [ -f "$cache/stamp" ] && [ "$(cat "$cache/stamp")" = "$(stamp)" ] &&
    [ -f "$cache/kernel/boot/vmlinuz" ] && [ -f "$cache/kernel/boot/initrd" ] && [ -f "$cache/disk/disk/guest.img" ]
}

kernel_package() { # the newest kernel is what Debian's meta package depends on
  apt-cache depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/^ *Depends: *\(linux-image-[0-9].*\)$/\1/p' | head -n 1
}

download() {
  kernel=$(kernel_package)
  [ -n "$kernel" ] || { say 'updating the package lists'; apt-get update -qq; kernel=$(kernel_package); }
  [ -n "$kernel" ] || fail 'no linux-image-cloud-amd64 in the package lists: check /etc/apt/sources.list'
  for package in "$kernel" qemu-guest-agent syslinux syslinux-common mtools dosfstools; do
    [ -n "$(find . -maxdepth 1 -name "${package}_*.deb" -size +0)" ] && continue
    say "downloading $package"
    apt-get download -qq "$package" 2>download.log || { apt-get update -qq && apt-get download -qq "$package" 2>download.log; } ||
      fail "cannot download $package: $(tail -n 1 download.log)"
  done
}

unpack() {
  for package in *.deb; do dpkg-deb -x "$package" tools; done
  PATH=$PWD/tools/usr/bin:$PWD/tools/usr/sbin:$PWD/tools/sbin:$PATH
}

module_file() { # the file of module $1; names may use - and _ alike
  find tools/lib/modules tools/usr/lib/modules -name "$(echo "$1" | sed 's/[-_]/[-_]/g').ko*" 2>/dev/null | head -n 1
}

add_module() { # copies module $1 and, before it, what it depends on; absent means built in
  file=$(module_file "$1")
  [ -n "$file" ] || return 0
  plain=$(basename "$file"); plain=${plain%%.ko*}.ko
  [ ! -f "root/modules/$plain" ] || return 0
  case $file in
    *.xz) xz -dc "$file" >"root/modules/$plain" ;;
    *.zst) zstd -qdc "$file" >"root/modules/$plain" ;;
    *) cp "$file" "root/modules/$plain" ;;
  esac
  needs=$(tr '\0' '\n' <"root/modules/$plain" | sed -n 's/^depends=//p' | head -n 1 | tr ',' ' ')
  for need in $needs; do (add_module "$need"); done
  echo "$plain" >>root/modules/order
}

add_program() { # copies the dynamically linked program $1 with its libraries to /usr/sbin
  cp "$1" root/usr/sbin/
  ldd "$1" | sed -n -e 's/.*=> \(\/[^ ]*\) .*/\1/p' -e 's/^[[:space:]]*\(\/[^ ]*\) .*/\1/p' | while read -r library; do
    mkdir -p "root$(dirname "$library")"
    cp -L "$library" "root$library"
  done
}

build_root() {
  mkdir -p root/bin root/sbin root/usr/bin root/usr/sbin root/proc root/sys root/dev root/run root/tmp root/root \
    root/etc/acpi/PWRF root/modules root/www root/var/run
  busybox --list-full | while read -r applet; do ln -sf /bin/busybox "root/$applet" 2>/dev/null || :; done
  rm -f root/bin/busybox
  cp "$(command -v busybox)" root/bin/busybox
  cp -r "$here/rootfs/." root/
  for name in poweroff shutdown; do # the agent calls /sbin/shutdown, with -r for a reboot
    rm -f "root/sbin/$name"
    printf '#!/bin/sh\nsync\ncase " $* " in *" -r "*) exec /bin/busybox reboot -f ;; esac\nexec /bin/busybox poweroff -f\n' \
      >"root/sbin/$name"
    chmod 755 "root/sbin/$name"
  done
  printf '#!/bin/sh\nexec /sbin/poweroff\n' >root/etc/acpi/PWRF/00000080
  chmod 755 root/init root/etc/udhcpc.script root/etc/acpi/PWRF/00000080 root/sbin/chpasswd root/bin/getent
  mkdir -p root/home/guest
  printf 'root:x:0:0:root:/root:/bin/sh\nguest:x:1000:1000:guest:/home/guest:/bin/sh\n' >root/etc/passwd
  printf 'root::0:0:99999:7:::\nguest:*:0:0:99999:7:::\n' >root/etc/shadow
  printf 'root:x:0:\nguest:x:1000:\n' >root/etc/group
  printf 'NAME="virtwire guest"\nID=virtwire\nVERSION_ID="1"\nPRETTY_NAME="virtwire guest 1"\n' >root/etc/os-release
  echo 'hello from the virtwire guest' >root/www/index.html
  add_program tools/usr/sbin/qemu-ga
  for module in virtio_pci virtio_blk virtio_net virtio_console virtio_scsi virtio_rng virtio_balloon virtio_mem \
    sd_mod sr_mod isofs ext4 button evdev vmw_vsock_virtio_transport; do
    add_module "$module"
  done
  # Not compressed: unpacking costs more than loading under emulation.
  (cd root && find . | busybox cpio -o -H newc -R 0:0 2>/dev/null) >initrd
}

build_disk() {
  size=$(( ($(wc -c <vmlinuz) + $(wc -c <initrd)) / 1048576 + 8 ))
  dd if=/dev/zero of=guest.img bs=1M count=0 seek="$size" 2>/dev/null
  mkfs.fat -F 16 -n VIRTWIRE guest.img >/dev/null
  printf 'DEFAULT guest\nPROMPT 0\nTIMEOUT 0\nLABEL guest\n KERNEL vmlinuz\n INITRD initrd\n APPEND console=ttyS0 quiet\n' >syslinux.cfg
  mcopy -i guest.img vmlinuz initrd syslinux.cfg tools/usr/lib/syslinux/modules/bios/ldlinux.c32 ::
  syslinux --install guest.img
}

if is_complete; then say "ready in $cache"; exit 0; fi
[ "$(uname -m)" = x86_64 ] || fail "the guest is built for x86_64 only, this machine is $(uname -m)"
mkdir -p "$cache"
work=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
cd "$work"
download
say 'unpacking'
unpack
say 'building the initramfs'
cp tools/boot/vmlinuz-* vmlinuz
build_root
say 'building the disk'
build_disk
rm -rf "$cache/kernel" "$cache/disk" "$cache/stamp"
mkdir -p "$cache/kernel/boot" "$cache/disk/disk"
mv vmlinuz initrd "$cache/kernel/boot/"
mv guest.img "$cache/disk/disk/guest.img"
chmod -R a+rX "$cache/kernel" "$cache/disk"
stamp >"$cache/stamp"
say "ready in $cache"
