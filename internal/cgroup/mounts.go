package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroupMounts describes where the kernel's control groups are mounted.
type cgroupMounts struct {
	// directory with a directory for each hierarchy of version 1; empty: none
	v1                  string
	version1Controllers map[string]bool // controllers mounted as version 1
	v2                  string          // mount point of version 2; empty: none
	ownGroup            string          // this process's own group of version 2, below v2; empty: unknown
}

// controllers returns the controllers that this package uses, by their names in version
// 1.
func controllers() []string {
	return []string{"cpu", "cpuacct", "cpuset", "memory", "devices", "pids", "blkio", "freezer"}
}

// findMounts reads /proc/self/mountinfo and /proc/self/cgroup (cgroups(7)).
func findMounts() cgroupMounts {
	m := cgroupMounts{version1Controllers: map[string]bool{}}
	text, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(text)) {
		before, after, _ := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if len(fields) < 5 || len(kind) == 0 {
			continue
		}
		point := unescape(fields[4])
		switch kind[0] {
		case "cgroup":
			if m.v1 == "" || strings.HasPrefix(point, "/sys/fs/cgroup/") {
				m.v1 = filepath.Dir(point)
			}
		case "cgroup2":
			if m.v2 == "" || strings.HasPrefix(point, "/sys/fs/cgroup") {
				m.v2 = point
			}
		}
	}
	if m.v1 != "" {
		for _, name := range controllers() {
			var fs unix.Statfs_t
			if unix.Statfs(filepath.Join(m.v1, name), &fs) == nil && fs.Type == unix.CGROUP_SUPER_MAGIC {
				m.version1Controllers[name] = true
			}
		}
	}
	if text, err := os.ReadFile("/proc/self/cgroup"); err == nil && m.v2 != "" {
		for line := range strings.Lines(string(text)) {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok && !strings.HasPrefix(path, "/..") {
				m.ownGroup = filepath.Join(m.v2, path)
			}
		}
	}
	return m
}

// unescape decodes the escapes of mountinfo, such as "\040" for a blank.
func unescape(path string) string {
	for {
		at := strings.IndexByte(path, '\\')
		if at < 0 || at+4 > len(path) {
			return path
		}
		code, err := strconv.ParseUint(path[at+1:at+4], 8, 8)
		if err != nil {
			return path
		}
		path = path[:at] + string(rune(code)) + path[at+4:]
	}
}

// writeError returns why this process may not create or change files at a path, or nil.
func writeError(path string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS); err != nil {
		return &os.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

// baseDir returns the directory of version 2 below which this process may make groups, or
// why there is none. Root uses the mount itself. Other users search a delegated part of
// the tree (systemd: Delegate=yes, or user@.service). That is the highest directory that
// they may write and that has no processes of its own, because a directory with processes
// cannot have groups with controllers below it.
func (m cgroupMounts) baseDir() (dir string, why error) {
	if m.v2 == "" {
		return "", nil
	}
	if why = writeError(m.v2); why == nil {
		return m.v2, nil
	}
	if m.ownGroup == "" {
		return "", why
	}
	for at := m.ownGroup; len(at) > len(m.v2); at = filepath.Dir(at) {
		if writeError(at) != nil || writeError(filepath.Join(at, "cgroup.subtree_control")) != nil ||
			writeError(filepath.Join(at, "cgroup.procs")) != nil {
			break
		}
		dir = at
	}
	if dir == "" {
		return "", why
	}
	return dir, nil
}
