package criu

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Probe examines a running task, from its first process down. The result says why it can
// probably not be dumped, or is nil. Probe takes a few milliseconds and does not disturb
// the task. It cannot know what the program will use later.
func Probe(pid int) *CheckpointError {
	pids := processTree(pid)
	home := [...]string{namespaceOf(pid, "user"), namespaceOf(pid, "mnt"), namespaceOf(pid, "pid")}
	inside := map[string]bool{}
	var unixes []uint32
	for _, p := range pids {
		here := [...]string{namespaceOf(p, "user"), namespaceOf(p, "mnt"), namespaceOf(p, "pid")}
		if here != home && !slices.Contains(here[:], "") { // dead processes have no namespaces
			return cannotSave(p, unsavableUse("nested"))
		}
		if tracer := statusFields(procPath(p, "status"))["TracerPid"]; tracer != "" && tracer != "0" {
			return cannotSave(p, unsavableUse("ptrace"))
		}
		for fd, to := range descriptorTargets(p) {
			if why := unsavableReason(p, fd, to); why != "" {
				return cannotSave(p, why)
			}
			if inode, ok := socketInode(to); ok && !inside[to] {
				inside[to] = true
				unixes = append(unixes, inode)
			}
		}
	}
	return externalSocket(unixes)
}

func cannotSave(pid int, why string) *CheckpointError {
	return &CheckpointError{Class: Permanent, Reason: fmt.Sprintf("%s (process %s)", why, processName(pid))}
}

// unsavableReason returns why an open file cannot be checkpointed.
func unsavableReason(pid, fd int, to string) string {
	switch {
	case strings.HasPrefix(to, "anon_inode:"):
		for what, name := range map[string]string{"io_uring": "[io_uring]", "perf_event": "[perf_event]",
			"userfaultfd": "[userfaultfd]", "bpf": "bpf-"} {
			if strings.Contains(to, name) {
				return unsavableUse(what)
			}
		}
	case to == "/dev/fuse":
		return unsavableUse("/dev/fuse")
	case strings.HasPrefix(to, "/dev/nvidia") || to == "/dev/kfd" || strings.HasPrefix(to, "/dev/dri/"):
		return unsavableUse("gpu")
	case strings.HasPrefix(to, "socket:"):
		if socketProtocol(pid, fd) == "MPTCP" {
			return unsavableUse("mptcp")
		}
	}
	return ""
}

// socketProtocol returns the protocol of a socket, which the kernel stores as an extended
// attribute of the descriptor.
func socketProtocol(pid, fd int) string {
	var name [32]byte
	n, err := unix.Getxattr(procPath(pid, "fd/"+strconv.Itoa(fd)), "system.sockprotoname", name[:])
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

// externalSocket finds a unix socket of the task that is connected to a process outside
// of the task.
func externalSocket(inodes []uint32) *CheckpointError {
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
		why := unsavableUse("unix")
		if name := all[s.peer].name; name != "" {
			why += ", " + name
		}
		return &CheckpointError{Class: Permanent, Reason: why}
	}
	return nil
}
