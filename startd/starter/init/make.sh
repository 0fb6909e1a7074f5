#!/bin/sh
# usage: make.sh NAME ARCH [FILE]
# Assembles NAME_ARCH.S (init or setup; amd64 or arm64) into FILE, NAME_ARCH.bin by default: an ELF file of one segment, without sections.
# The bytes of init are part of every checkpoint's world: on another machine an image finds the same program only if it has the same size
# and code, so they are kept in the source and never made anew without need.
set -eu
cd "$(dirname "$0")"
name=$1 arch=$2
out=${3:-${name}_$arch.bin}
case $arch in
amd64) machine=x86_64 emulation=elf_x86_64 ;;
arm64) machine=aarch64 emulation=aarch64linux ;;
*) echo "make.sh: no such architecture: $arch" >&2; exit 2 ;;
esac
tools=$machine-linux-gnu-
[ "$(uname -m)" = $machine ] && tools=
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
"${tools}as" -o "$tmp/made.o" "${name}_$arch.S"
"${tools}ld" -m $emulation -static --build-id=none -z noseparate-code -z noexecstack -o "$tmp/made" "$tmp/made.o"
"${tools}strip" -s -o "$tmp/stripped" "$tmp/made"
# The section headers and names that strip leaves stand behind the segment: cut them off, and say in the header that there are none.
size=$((0x$("${tools}readelf" -lW "$tmp/stripped" | awk '$1 == "LOAD" { print substr($5, 3) }')))
head -c "$size" "$tmp/stripped" >"$out"
printf '\0\0\0\0\0\0\0\0' | dd of="$out" bs=1 seek=40 conv=notrunc status=none
printf '\0\0\0\0\0\0' | dd of="$out" bs=1 seek=58 conv=notrunc status=none
chmod 755 "$out"
