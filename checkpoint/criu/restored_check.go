package criu

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// checkRestored checks the restored processes when they have their final rights and have
// executed nothing. Each must be as the claim requires, whatever the image contains. The
// error names a violation.
func (r *restoreAgent) checkRestored() error {
	all := processTree(r.pid)
	inside := map[int]bool{}
	for _, pid := range all {
		inside[pid] = true
	}
	for _, pid := range all {
		first := pid == r.pid
		if !first && hasEnded(pid) {
			continue // it is dead and waits to be reaped
		}
		if err := r.checkNamespaces(pid); err != nil {
			return err
		}
		for _, tid := range threadIDs(pid) {
			if err := r.checkRights(statusFields(procPath(pid, "task/"+strconv.Itoa(tid)+"/status")),
				first); err != nil {
				return err
			}
		}
	}
	for _, pid := range numericEntries("/proc") {
		if !inside[pid] && namespaceOf(pid, "pid") == namespaceOf(r.pid, "pid") {
			return badImageError("there is a process outside of its tree")
		}
	}
	if r.spec.Init == "" {
		return nil
	}
	return r.checkInit()
}

// checkNamespaces checks that a process is in the namespaces of its sandbox, and in this
// process's control group.
func (r *restoreAgent) checkNamespaces(pid int) error {
	// true: one of the sandbox's own. The time namespace is not compared, because CRIU
	// makes one.
	for kind, own := range map[string]bool{"pid": true, "mnt": true, "ipc": true, "uts": true, "net": false,
		"cgroup": false} {
		here := namespaceOf(pid, kind)
		if own && (here == namespaceOf(os.Getpid(), kind) || here != namespaceOf(r.pid, kind)) ||
			!own && here != namespaceOf(os.Getpid(), kind) {
			return badImageError("process %s is in another %s namespace than it may be", processName(pid), kind)
		}
	}
	if namespaceOf(pid, "user") != namespaceOf(r.pid, "user") {
		return badImageError("process %s is in a user namespace of its own", processName(pid))
	}
	ours, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	if theirs, err := os.ReadFile(procPath(pid, "cgroup")); err != nil || !bytes.Equal(ours, theirs) {
		return badImageError("process %s is in another control group", processName(pid))
	}
	return nil
}

// checkRights compares the ids and capabilities of a thread with those of the claim.
func (r *restoreAgent) checkRights(fields map[string]string, first bool) error {
	uid, gid, groups := r.spec.User.UID, r.spec.User.GID, r.spec.User.Groups
	if first && (r.spec.Init != "" || strings.HasPrefix(fields["Uid"], "0\t")) {
		uid, gid, groups = 0, 0, nil
	}
	for _, word := range strings.Fields(fields["Uid"]) {
		if word != strconv.FormatUint(uint64(uid), 10) {
			return newForgedError("process %s has uid %s", fields["Name"], word)
		}
	}
	for _, word := range append(strings.Fields(fields["Gid"]), strings.Fields(fields["Groups"])...) {
		n, err := strconv.ParseUint(word, 10, 32)
		if err != nil || uint32(n) != gid && !slices.Contains(groups, uint32(n)) {
			return badImageError("process %s is of group %s", fields["Name"], word)
		}
	}
	for _, set := range []string{"CapInh", "CapPrm", "CapEff", "CapAmb"} {
		has, err := strconv.ParseUint(fields[set], 16, 64)
		if err != nil || uid != 0 && has != 0 || has&^r.allowedCapabilities(set) != 0 {
			return newForgedError("process %s has capabilities: %s %s", fields["Name"], set, fields[set])
		}
	}
	if has, err := strconv.ParseUint(fields["CapBnd"], 16, 64); err != nil ||
		has&^r.allowedCapabilities("CapBnd") != 0 {
		return badImageError("process %s may have capabilities that we may not: %s", fields["Name"], fields["CapBnd"])
	}
	if own := statusFields("/proc/thread-self/status"); fields["NoNewPrivs"] != "1" && own["NoNewPrivs"] == "1" ||
		fields["Seccomp"] < own["Seccomp"] {
		return badImageError("process %s may get more rights than it has", fields["Name"])
	}
	if fields["NoNewPrivs"] != "1" && uid != 0 {
		return badImageError("process %s may get more rights than it has", fields["Name"])
	}
	return nil
}

// allowedCapabilities returns the capabilities that root's processes in the sandbox may
// have. They are this process's own, or all in a user namespace of the sandbox, where
// they have no effect outside.
func (r *restoreAgent) allowedCapabilities(set string) uint64 {
	if namespaceOf(r.pid, "user") != namespaceOf(os.Getpid(), "user") {
		return ^uint64(0)
	}
	if set == "CapInh" || set == "CapAmb" {
		set = "CapPrm"
	}
	own, _ := strconv.ParseUint(statusFields("/proc/thread-self/status")[set], 16, 64)
	return own
}

// checkInit compares the code of the first process with its program, and checks its open
// files.
func (r *restoreAgent) checkInit() error {
	want, err := os.ReadFile(r.spec.Init)
	if err != nil {
		return err
	}
	memory, err := os.Open(procPath(r.pid, "mem"))
	if err != nil {
		return err
	}
	defer memory.Close()
	got := make([]byte, initEnd-initBase)
	if _, err := memory.ReadAt(got, initBase); err != nil {
		return fmt.Errorf("first process: %w", err)
	}
	if len(want) > len(got) || !bytes.Equal(got[:len(want)], want) ||
		bytes.ContainsFunc(got[len(want):], func(c rune) bool {
			return c != 0
		}) {
		return badImageError("its first process runs another program")
	}
	for fd, to := range descriptorTargets(r.pid) {
		if !r.isAllowedInitFile(procPath(r.pid, "fd/"+strconv.Itoa(fd))) {
			return badImageError("its first process has %.200s open", to)
		}
	}
	return nil
}

// isAllowedInitFile reports whether the first process may have a file open: /dev/null and
// the files in the spec.
func (r *restoreAgent) isAllowedInitFile(at string) bool {
	var st unix.Stat_t
	if unix.Stat(at, &st) != nil {
		return false
	}
	if st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev == unix.Mkdev(1, 3) {
		return true
	}
	return slices.ContainsFunc(r.spec.InitFiles, func(path string) bool {
		var own unix.Stat_t
		return unix.Lstat(path, &own) == nil && st.Dev == own.Dev && st.Ino == own.Ino &&
			st.Mode&unix.S_IFMT == unix.S_IFREG
	})
}
