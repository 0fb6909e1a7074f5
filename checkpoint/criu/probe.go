package criu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Probe looks at a running task, from its first process down, and says why it can probably not be dumped; nil says that nothing speaks
// against it. It takes a few milliseconds and does not disturb the task. What the program starts to use later it cannot know.
func Probe(pid int) *Failure {
	pids := tree(pid)
	home := [...]string{namespace(pid, "user"), namespace(pid, "mnt"), namespace(pid, "pid")}
	inside := map[string]bool{}
	var unixes []uint32
	for _, p := range pids {
		here := [...]string{namespace(p, "user"), namespace(p, "mnt"), namespace(p, "pid")}
		if here != home && !slices.Contains(here[:], "") { // the dead have none
			return cannot(p, used("nested"))
		}
		if tracer := status(proc(p, "status"))["TracerPid"]; tracer != "" && tracer != "0" {
			return cannot(p, used("ptrace"))
		}
		for fd, to := range links(p) {
			if why := unsaved(p, fd, to); why != "" {
				return cannot(p, why)
			}
			if inode, ok := socketInode(to); ok && !inside[to] {
				inside[to] = true
				unixes = append(unixes, inode)
			}
		}
	}
	return outsiders(unixes)
}

func cannot(pid int, why string) *Failure {
	return &Failure{Class: Never, Reason: fmt.Sprintf("%s (process %s)", why, command(pid))}
}

// unsaved says why an open file cannot be saved.
func unsaved(pid, fd int, to string) string {
	switch {
	case strings.HasPrefix(to, "anon_inode:"):
		for what, name := range map[string]string{"io_uring": "[io_uring]", "perf_event": "[perf_event]", "userfaultfd": "[userfaultfd]", "bpf": "bpf-"} {
			if strings.Contains(to, name) {
				return used(what)
			}
		}
	case to == "/dev/fuse":
		return used("/dev/fuse")
	case strings.HasPrefix(to, "/dev/nvidia") || to == "/dev/kfd" || strings.HasPrefix(to, "/dev/dri/"):
		return used("gpu")
	case strings.HasPrefix(to, "socket:"):
		if protocol(pid, fd) == "MPTCP" {
			return used("mptcp")
		}
	}
	return ""
}

// protocol names the protocol of a socket, which the kernel tells as an attribute of the descriptor.
func protocol(pid, fd int) string {
	var name [32]byte
	n, err := unix.Getxattr(proc(pid, "fd/"+strconv.Itoa(fd)), "system.sockprotoname", name[:])
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(name[:n]), "\x00")
}

func socketInode(link string) (uint32, bool) {
	text, ok := strings.CutPrefix(link, "socket:[")
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "]"), 10, 32)
	return uint32(n), err == nil
}

// outsiders finds a unix socket of the task that is connected to one of nobody in the task.
func outsiders(inodes []uint32) *Failure {
	if len(inodes) == 0 {
		return nil
	}
	own := map[uint32]bool{}
	for _, inode := range inodes {
		own[inode] = true
	}
	all, err := unixSockets()
	if err != nil {
		return nil
	}
	for _, inode := range inodes {
		s, ok := all[inode]
		if !ok || s.peer == 0 || own[s.peer] {
			continue
		}
		why := used("unix")
		if name := all[s.peer].name; name != "" {
			why += ", " + name
		}
		return &Failure{Class: Never, Reason: why}
	}
	return nil
}
