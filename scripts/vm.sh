#!/usr/bin/env bash
# Boots Debian's stock kernel in QEMU and runs there the tests that scripts/vm/tests lists, or those of the packages that are named. This machine
# gives its processes what its own kernel and its administrator give them; the one inside is what Debian installs: cgroups of version 2 with all
# controllers, and a root that has every right. Nothing is installed here: everything lies below build/vm, and a second run fetches nothing.
#
# The clock of the machine counts its instructions, two nanoseconds each, and jumps when it has nothing to do. So what is slow here is not slow
# in there: a busy host makes no test late, and no test waits in vain.
#
#	VM_TESTS    the file in scripts/vm with the tests (tests; "quick" is what CI runs)
#	VM_SUITE    the release whose kernel and programs run inside (trixie)
#	VM_MACHINES over how many machines that run at once, a processor each, the lines of that file are dealt (1)
#	VM_TIMEOUT  seconds for all of it (3000); it is emulated, and ten times slower than this one
#	VM_ACCEL    what QEMU emulates with (tcg); the clock is the host's for any other
#	VM_SKIP     set: where there is no such machine, that is a test that was skipped, and no failure
set -euo pipefail
cd "$(dirname "$0")/.."
suite=${VM_SUITE:-trixie}
dir=$PWD/build/vm
go=${GO:-go}

fail() {
	printf 'vm: %s\n' "$@" >&2
	exit 1
}

# A machine that cannot be had is not a machine that failed.
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

# Modules are compressed in the package. These are for the disk, for keyboards, and for CRIU, which asks sockets by them and looks at what the kernel has; some
# are no modules in some kernels. Their order is that of what they depend on.
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
export CGO_ENABLED=0
"$go" build -trimpath -ldflags '-s -w' -o "$dir/stage/vm/bin/" ./cmd/...
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
ln -s "$dir/criu" "$dir/stage/usr/local/lib/roost/criu" # its libraries are looked for where it was unpacked
echo '127.0.0.1 localhost vm' >"$dir/stage/etc/hosts"
"$go" run ./internal/vmimage -o "$dir/initramfs" "$root=/" "$dir/stage=/" scripts/vm/init=/init scripts/vm/run=/vm/run \
	scripts/vm/go=/usr/local/bin/go "$dir/criu=$dir/criu"

# boot becomes one machine. QEMU 7.2, which Debian 12 has, crashes newer kernels in what it emulates of cmpxchg16b: hence that of trixie, with
# its own libraries. What tests write goes to a disk, as a file in memory counts as memory of who wrote it.
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

# The same log that go test -v would have written.
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
