#!/usr/bin/env bash
# Builds libdrmaa.so.1, the C library of DRMAA, into the given directory. CC and LDFLAGS
# choose another compiler, and options of the linker.
set -euo pipefail
to=$(realpath "$1")
cd "$(dirname "$0")/../internal/drmaa"
CC=${CC:-cc}
command -v "$CC" >/dev/null || {
	echo "libdrmaa.so.1 is not built: there is no C compiler ($CC; Debian: gcc and libc6-dev)"
	exit 0
}
new=$(find . ../../version.go ../../scripts/drmaa.sh -maxdepth 1 -newer "$to/libdrmaa.so.1" 2>/dev/null || echo all)
[ -n "$new" ] || exit 0
version=$(sed -n 's/^const Version = "\(.*\)"$/\1/p' ../../version.go)
"$CC" -std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Wformat-security -fstack-protector-strong -fPIC -shared -fvisibility=hidden \
	-DROOST_VERSION="\"$version\"" -Wl,-soname,libdrmaa.so.1 -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -pthread ${LDFLAGS:-} \
	-o "$to/libdrmaa.so.1.new" *.c
mv "$to/libdrmaa.so.1.new" "$to/libdrmaa.so.1"
ln -sf libdrmaa.so.1 "$to/libdrmaa.so"
