#!/bin/sh
# Assembles init_amd64.S into init_amd64.bin: an ELF file of one segment, without sections.
# Every checkpoint depends on these bytes: on another machine an image finds the same
# program only if it has the same size and code. So the binary is part of the source and is
# rebuilt only when necessary.
set -eu
cd "$(dirname "$0")"
out=${1:-init_amd64.bin}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
as --64 -o "$tmp/init.o" init_amd64.S
ld -m elf_x86_64 -static --build-id=none -z noseparate-code -z noexecstack -o "$tmp/init" "$tmp/init.o"
strip -s -o "$tmp/stripped" "$tmp/init"
# Cut off the section headers and names that strip leaves after the segment, and clear
# their fields in the ELF header.
size=$((0x$(readelf -lW "$tmp/stripped" | awk '$1 == "LOAD" { print substr($5, 3) }')))
head -c "$size" "$tmp/stripped" >"$out"
printf '\0\0\0\0\0\0\0\0' | dd of="$out" bs=1 seek=40 conv=notrunc status=none
printf '\0\0\0\0\0\0' | dd of="$out" bs=1 seek=58 conv=notrunc status=none
chmod 755 "$out"
