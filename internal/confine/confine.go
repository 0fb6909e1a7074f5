// Package confine takes from a daemon what it does not need, before it reads what others
// send. It takes files outside of its own (Landlock, landlock(7)), system calls that it
// never makes (seccomp(2)), capabilities, and new rights (PR_SET_NO_NEW_PRIVS). A daemon
// that was taken over can then harm less than its account could.
//
// What the kernel lacks is left out, and Missing says so. The children of the daemon
// inherit all of it.
package confine

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/landlock-lsm/go-landlock/landlock"
	"golang.org/x/sys/unix"
	"kernel.org/pub/linux/libs/security/libcap/psx"

	"github.com/roost-batch/roost"
)

// Rights are the files that a daemon needs besides those of the system.
type Rights struct {
	Write   []string // directories with files that it writes
	Read    []string // files and directories that it reads
	Execute []string // directories of its programs
}

// systemFiles are what programs, resolvers and the Go runtime read.
func systemFiles() (dirs, files []string) {
	return []string{"/usr", "/lib", "/lib64", "/etc/ssl/certs", "/etc/pki/tls/certs", "/etc/pki/ca-trust",
			"/var/lib/sss", "/run/systemd/resolve", "/run/systemd/userdb", "/run/resolvconf", "/proc",
			"/sys/fs/cgroup", "/sys/kernel/mm/transparent_hugepage"},
		[]string{"/etc/resolv.conf", "/etc/hosts", "/etc/host.conf", "/etc/nsswitch.conf", "/etc/gai.conf",
			"/etc/services", "/etc/protocols", "/etc/passwd", "/etc/group", "/etc/localtime", "/etc/timezone",
			"/etc/mime.types", "/etc/ld.so.cache", "/etc/ld.so.preload", "/etc/os-release", "/dev/zero",
			"/dev/random", "/dev/urandom"}
}

// Apply confines the process for good: all its threads, and its children. It returns what
// the kernel lacks. The process has its account by then, and has opened what it may not
// open later.
func Apply(r Rights) (missing []string, err error) {
	missing = Missing() // it would be refused later
	if err := restrictFiles(r); err != nil {
		return missing, err
	}
	if err := dropCapabilities(); err != nil {
		return missing, err
	}
	return missing, restrictCalls()
}

// restrictFiles has the kernel refuse other files, in all threads. It sets no_new_privs,
// too. On a kernel without Landlock it does that alone.
func restrictFiles(r Rights) error {
	dirs, files := systemFiles()
	rules := []landlock.Rule{
		landlock.RODirs(dirs...).IgnoreIfMissing(), landlock.ROFiles(files...).IgnoreIfMissing(),
		landlock.RWFiles("/dev/null").IgnoreIfMissing(),
		landlock.RWDirs(absolute(r.Write)...).WithRefer().IgnoreIfMissing(),
		landlock.RODirs(absolute(r.Execute)...).IgnoreIfMissing(),
	}
	for _, path := range absolute(r.Read) {
		var info unix.Stat_t
		switch err := unix.Stat(path, &info); {
		case errors.Is(err, unix.ENOENT):
		case err != nil:
			return fmt.Errorf("confinement: %s: %w: %w", path, roost.NoInput, err)
		case info.Mode&unix.S_IFMT == unix.S_IFDIR:
			rules = append(rules, landlock.PathAccess(readDir, path))
		default:
			rules = append(rules, landlock.PathAccess(readFile, path))
		}
	}
	if _, _, e := psx.Syscall6(syscall.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("confinement: no new privileges: %w: %w", roost.PermissionDenied, e)
	}
	if err := landlock.V7.BestEffort().RestrictPaths(rules...); err != nil {
		return fmt.Errorf("confinement: files: %w: %w", roost.PermissionDenied, err)
	}
	return nil
}

// Rights of Landlock for what is only read (landlock(7)).
const (
	readFile landlock.AccessFSSet = unix.LANDLOCK_ACCESS_FS_READ_FILE
	readDir                       = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
)

func absolute(paths []string) (all []string) {
	for _, p := range paths {
		if full, err := filepath.Abs(p); err == nil {
			all = append(all, full)
		}
	}
	return all
}

// dropCapabilities gives up all capabilities, in all threads. A process of root without
// them is an ordinary owner of root's files.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	_, _, e := psx.Syscall3(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0)
	runtime.KeepAlive(&none)
	if e != 0 {
		return fmt.Errorf("confinement: capabilities: %w: %w", roost.PermissionDenied, e)
	}
	return nil
}

// restrictCalls has the kernel refuse other system calls, in all threads.
func restrictCalls() error {
	if !seccomp.Supported() {
		return nil
	}
	filter, err := callFilter(runtime.GOARCH)
	if err != nil {
		return err
	}
	runtime.LockOSThread() // no_new_privs and the filter are set by one thread
	defer runtime.UnlockOSThread()
	if err := seccomp.LoadFilter(filter); err != nil {
		return fmt.Errorf("confinement: system calls: %w: %w", roost.PermissionDenied, err)
	}
	return nil
}

// Missing returns what the kernel lacks of this package's means.
func Missing() (all []string) {
	if abi, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0,
		unix.LANDLOCK_CREATE_RULESET_VERSION); e != 0 || abi < 1 {
		all = append(all, "Landlock, which keeps a daemon that was taken over from files that are not its own")
	}
	if !seccomp.Supported() {
		all = append(all, "seccomp, which keeps a daemon that was taken over from system calls that it does not need")
	}
	return all
}
