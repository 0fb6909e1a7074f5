package criu

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/atomicfile"
	"github.com/roost-batch/roost/internal/boottime"
)

// MachineCache is the file of the last result on this machine, for all startds of root.
// It is in /run, which only root can write and which is empty after a boot.
const MachineCache = "/run/roost-criu.json"

// selfTestVersion changes when the self-test examines something else.
const selfTestVersion = 1

// failureLifetime is how long a CRIU that has failed is not tested again. What was wrong
// may be repaired outside the program: a library, a module of the kernel, the rights of a
// container.
const failureLifetime = 10 * time.Minute

// checkKey holds what a result depends on: the program, the kernel, and the rights of
// this process. The change time of a file cannot be set, so an upgrade that keeps the
// modification time is noticed as well.
type checkKey struct {
	SelfTest int
	Boot     string // which includes the kernel
	Rights   string // capabilities of this process
	Path     string
	File     string // device, inode, size and times
}

// cachedCheck is a result with its key.
type cachedCheck struct {
	Key     checkKey
	At      time.Time
	Verdict CheckResult
}

// newCheckKey returns the key of the program at path.
func newCheckKey(path string) (k checkKey, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return k, err
	}
	boot, err := boottime.BootID()
	if err != nil {
		return k, err
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return k, err
	}
	_, rights, _ := strings.Cut(string(status), "\nCapEff:")
	rights, _, _ = strings.Cut(rights, "\n")
	s := info.Sys().(*syscall.Stat_t)
	return checkKey{
		SelfTest: selfTestVersion, Boot: boot, Path: path, Rights: strings.TrimSpace(rights),
		File: fmt.Sprintf("%d:%d:%d:%d:%d", s.Dev, s.Ino, s.Size, time.Unix(s.Mtim.Unix()).UnixNano(),
			time.Unix(s.Ctim.Unix()).UnixNano()),
	}, nil
}

// readCheck returns the result in a file, if it is one for this key. A file that users
// other than root could have written counts as absent.
func readCheck(path string, key checkKey, now time.Time) (CheckResult, bool) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return CheckResult{}, false
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 ||
		info.Sys().(*syscall.Stat_t).Uid != 0 {
		return CheckResult{}, false
	}
	var last cachedCheck
	if json.NewDecoder(f).Decode(&last) != nil || last.Key != key {
		return CheckResult{}, false
	}
	if age := now.Sub(last.At); !last.Verdict.Works && (age < 0 || age > failureLifetime) {
		return CheckResult{}, false
	}
	return last.Verdict, true
}

// writeCheck stores a result. One that cannot be stored is found out again.
func writeCheck(path string, key checkKey, now time.Time, v CheckResult) {
	if text, err := json.Marshal(cachedCheck{key, now, v}); err == nil {
		atomicfile.Write(path, text, 0o600)
	}
}
