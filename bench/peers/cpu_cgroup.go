package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// joinSharedCgroup puts a process, with its future children, into a new control group for
// CPU time below this one. Without it the kernel divides a busy machine by sessions
// (sched(7), "autogroup"), so that a system whose daemons each make a session would get
// more than one whose daemons share one.
func joinSharedCgroup(name string, pid int) (leave func(), err error) {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cpuCgroupPath(string(text), "/sys/fs/cgroup"), name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
		os.Remove(dir)
		return nil, err
	}
	return func() {
		for range 100 { // the last of them may not have ended yet
			if err := os.Remove(dir); err == nil || os.IsNotExist(err) {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		fmt.Fprintf(os.Stderr, "peers: %s: it cannot be removed\n", dir)
	}, nil
}

// cpuCgroupPath finds the directory of the group that controls CPU time in
// /proc/self/cgroup (cgroups(7)). In version 1 it is that of the controller, else that of
// version 2.
func cpuCgroupPath(text, root string) string {
	found := root
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) < 3 {
			continue
		}
		if f[1] == "" {
			found = filepath.Join(root, f[2])
		}
		if slices.Contains(strings.Split(f[1], ","), "cpu") {
			return filepath.Join(root, "cpu", f[2])
		}
	}
	return found
}
