#!/usr/bin/env bash
# Boots Debian's stock kernel in QEMU and runs there the tests that scripts/vm/tests
# lists, or those of the packages given as arguments. On this machine the tests depend on
# its kernel and its administrator; the virtual machine is a default installation of
# Debian: cgroups of version 2 with all controllers, and a root with all rights. Nothing
# is installed here: all files are below build/vm, and a second run downloads nothing.
#
# The clock of the virtual machine counts its instructions, two nanoseconds each, and
# jumps when it is idle. So a slow host is not slow inside: a busy host delays no test,
# and no wait in a test takes long.
#
#	VM_TESTS    the file in scripts/vm with the tests (tests; "quick" is what CI runs)
#	VM_SUITE    the release whose kernel and programs run inside (trixie)
#	VM_MACHINES number of machines among which the lines of that file are divided; they
#	            run at the same time, with one processor each (1)
#	VM_TIMEOUT  seconds for all of it (3000); emulation is ten times slower than this machine
#	VM_ACCEL    QEMU's accelerator (tcg); with any other the clock is the host's
#	VM_SKIP     set: a missing virtual machine is a skipped test, and no failure
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${VM_SUITE:-trixie}
dir=$PWD/build/vm
go=${GO:-go}

fail() {
	printf 'vm: %s\n' "$@" >&2
	exit 1
}

# A missing virtual machine is not a failed one.
without() {
	[ -n "${VM_SKIP:-}" ] || fail "$@"
	printf '\n  SKIPPED all tests in a machine with another kernel: %s\ntests skipped: 1\n\n' "$*"
	exit 0
}
[ "$(dpkg --print-architecture 2>/dev/null)" = amd64 ] || without "the machine is known for amd64 on Debian only."
mkdir -p "$dir"
exec 9>"$dir/lock"
flock -n 9 || fail "another run uses $dir."

echo "vm: QEMU, Debian's kernel and programs ($suite), CRIU"
debs() { scripts/vm/debs.sh "$@" || without "the packages that it is made of could not be had: $2 of Debian."; }
debs "$dir/qemu" trixie qemu-system-x86
ALONE=1 debs "$dir/kernel-$suite" "$suite" linux-image-cloud-amd64
debs "$dir/root-$suite" "$suite" busybox-static bash dash coreutils sed grep findutils mawk procps util-linux e2fsprogs python3 libc-bin
CRIU_PREFIX=$dir/criu scripts/criu.sh unpack
kernel=$(echo "$dir/kernel-$suite"/boot/vmlinuz-*)
root=$dir/root-$suite

# Modules are compressed in the package. These are for the disk, for keyboards, and for
# CRIU, which uses them to inspect sockets and checks the kernel's features. Some kernels
# have some of them built in. The order is that of their dependencies.
rm -rf "$dir/stage" && mkdir -p "$dir/stage"/{vm/tests,vm/bin,modules,src,etc}
: >"$dir/stage/vm/modules"
for module in virtio virtio_ring virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk crc32c_generic crc16 mbcache jbd2 ext4 inet_diag tcp_diag udp_diag raw_diag unix_diag af_packet_diag netlink_diag \
	tun nfnetlink libcrc32c nf_tables evdev uinput; do
	file=$(find "$dir/kernel-$suite" -name "$module.ko*")
	case $file in
	"") continue ;;
	*.xz) "$root/usr/bin/busybox" unxz -c "$file" >"$dir/stage/modules/$module.ko" ;;
	*) cp "$file" "$dir/stage/modules/$module.ko" ;;
	esac
	echo "/modules/$module.ko" >>"$dir/stage/vm/modules"
done

echo "vm: programs and tests"
. scripts/flags.sh
export CGO_ENABLED=0
"$go" build -ldflags '-s -w' -o "$dir/stage/vm/bin/" ./cmd/roost-starter ./cmd/roost-ranks # scripts/vm/go names any other that a test wants
grep -v '^#' "scripts/vm/${VM_TESTS:-tests}" | while read -r package user flags; do
	[ $# = 0 ] || [[ " ${*#./} " == *" $package "* ]] || continue
	echo "$package $user $flags" >>"$dir/stage/vm/list"
	mkdir -p "$dir/stage/src/$package"
	[ ! -d "$package/testdata" ] || cp -a "$package/testdata" "$dir/stage/src/$package/"
	test=$dir/stage/vm/tests/${package//\//-}.test
	[ -e "$test" ] || "$go" test -c -ldflags '-s -w' -o "$test" "./$package"
done
mkdir -p "$dir/stage/src/startd/starter"
cp -a startd/starter/init "$dir/stage/src/startd/starter/" # the first process of boxes, which tests of checkpoints start
[ -s "$dir/stage/vm/list" ] || fail "scripts/vm/${VM_TESTS:-tests} has none of: $*"
machines=$(awk -v most="${VM_MACHINES:-1}" 'END { print NR < most ? NR : most }' "$dir/stage/vm/list")
awk -v machines="$machines" '{ print >(FILENAME "." (NR - 1) % machines + 1) }' "$dir/stage/vm/list"
unset CGO_ENABLED

printf '%s\n' root:x:0:0:root:/root:/bin/bash daemon:x:1:1::/:/bin/false user:x:1000:1000:user:/home/user:/bin/bash \
	other:x:1001:1001:other:/:/bin/bash nobody:x:65534:65534::/:/bin/false >"$dir/stage/etc/passwd"
printf '%s\n' root:x:0: daemon:x:1: tty:x:5: user:x:1000: other:x:1001: extra:x:1002:user nogroup:x:65534: >"$dir/stage/etc/group"
mkdir -p "$dir/stage/usr/local/lib/roost"
ln -s "$dir/criu" "$dir/stage/usr/local/lib/roost/criu" # its libraries are searched where it was unpacked
echo '127.0.0.1 localhost vm' >"$dir/stage/etc/hosts"
"$go" run ./internal/vmimage -o "$dir/initramfs" "$root=/" "$dir/stage=/" scripts/vm/init=/init scripts/vm/run=/vm/run \
	scripts/vm/go=/usr/local/bin/go "$dir/criu=$dir/criu"

# boot runs one virtual machine. QEMU 7.2 of Debian 12 crashes newer kernels with its
# emulation of cmpxchg16b: hence that of trixie, with its own libraries. The tests' files
# are on a disk, as a file in memory counts as the memory of its writer.
q=$dir/qemu
accel=${VM_ACCEL:-tcg}
[ "$accel" != tcg ] || accel="tcg,thread=single -icount shift=1,sleep=off"
boot() {
	local n=$1
	truncate -s 8G "$dir/disk.$n"
	"$root/lib64/ld-linux-x86-64.so.2" --library-path "$root/usr/lib/x86_64-linux-gnu" "$root/usr/sbin/mke2fs" -q -F -t ext4 "$dir/disk.$n"
	# shellcheck disable=SC2086
	exec timeout -k 10 "${VM_TIMEOUT:-3000}" "$q/lib64/ld-linux-x86-64.so.2" --library-path "$q/usr/lib/x86_64-linux-gnu" "$q/usr/bin/qemu-system-x86_64" \
		-L "$q/usr/share/qemu" -L "$q/usr/share/seabios" -accel $accel -smp 2 -m 3072 -nodefaults -no-user-config -display none -no-reboot \
		-kernel "$kernel" -initrd "$dir/initramfs" -append "console=ttyS0 panic=-1 loglevel=4 mitigations=off vm_list=$n" \
		-drive "file=$dir/disk.$n,format=raw,if=virtio,cache=unsafe" -serial "file:$dir/console.$n" -serial "file:$dir/results.$n" </dev/null
}
echo "vm: boot $(basename "$kernel"), machines: $machines"
rm -f "$dir"/{disk,results,console}{,.*} "$dir/log"
running=()
trap 'kill "${running[@]}" 2>/dev/null || true' EXIT
for n in $(seq "$machines"); do
	boot "$n" &
	running+=($!)
done
status=0
for n in "${running[@]}"; do wait "$n" || status=$?; done
trap - EXIT
rm -f "$dir"/disk.*
for n in $(seq "$machines"); do touch "$dir/results.$n" "$dir/console.$n"; done

# Writes the log that go test -v would have written.
kernel=$(sed -n 's/^@@ KERNEL //p' "$dir/results.1")
for n in $(seq "$machines"); do awk -v module="$(awk '$1 == "module" { print $2 }' go.mod)" '
	/^@@ BEGIN / { open = $3 " as " $5; next }
	/^@@ END / { printf "%s\t%s as %s\t(at %ss)\n", $3 == 0 ? "ok  " : "FAIL", module "/" $5, $7, $4; open = ""; next }
	/^@@ / { if ($2 == "DONE") done = 1; next }
	/^(PASS|FAIL)$/ { next }
	{ print }
	END {
		if (open != "") printf "FAIL\t%s/%s\t(the machine ended in it)\n", module, open
		else if (!done) printf "FAIL\tthe machine ended before its last line\n"
	}' "$dir/results.$n" >>"$dir/log"; done
bad=0
! grep -q '^FAIL' "$dir/log" || bad=1
[ "$status" = 0 ] || { bad=1; echo "vm: QEMU ended with status $status$([ "$status" != 124 ] || echo ", out of time")"; }
[ -n "$kernel" ] || { echo "vm: the machine did not come up; the end of its console:"; tail -n 20 "$dir/console.1"; }
scripts/report.sh "$dir/log" $bad || true
count() { grep -cE "^ *--- $1: " "$dir/log" || true; }
echo "vm: Linux ${kernel:-that did not come up}"
echo "vm: $(count PASS) passed, $(count FAIL) failed, $(count SKIP) skipped; all that was said is in $dir/results.*"
exit $bad
