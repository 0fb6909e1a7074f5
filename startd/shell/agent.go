package shell

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// AgentCommand is the first argument of a program that must call Agent with the remaining
// ones.
const AgentCommand = "shell-agent"

// The agent's steps, as its second argument.
const (
	stepJoin   = "join"
	stepBecome = "become"
)

// Agent performs one step of entering a task, and returns only if that fails.
func Agent(args []string) error {
	runtime.LockOSThread() // the settings of this thread must apply to the one that execs
	if len(args) != 1 {
		return fmt.Errorf("%w: an execute node starts this", roost.Usage)
	}
	o, err := readRequest(os.NewFile(requestFD, "order"))
	if err != nil {
		return fmt.Errorf("%w: an execute node starts this: %w", roost.Usage, err)
	}
	switch args[0] {
	case stepJoin:
		return o.joinNamespaces()
	case stepBecome:
		return o.becomeTaskUser()
	}
	return fmt.Errorf("%w: an execute node starts this", roost.Usage)
}

// joinNamespaces waits for the go-ahead and enters the namespaces, if there are any.
func (o *agentRequest) joinNamespaces() error {
	if n, err := os.NewFile(gateFD, "gate").Read(make([]byte, 1)); n != 1 {
		return fmt.Errorf("%w: called off: %w", roost.Unavailable, err)
	}
	if err := setParentDeathSignal(o.Parent); err != nil {
		return err
	}
	if o.Change { // now, as a namespace may forbid it later
		if err := unix.Setgroups(ints(o.Groups)); err != nil {
			return fmt.Errorf("groups: %w", err)
		}
	}
	if len(o.Joined) == 0 {
		return o.becomeTaskUser()
	}
	// inside, its path may lead to nothing or to something else
	self, err := unix.Open("/proc/self/exe", unix.O_RDONLY, 0)
	if err != nil {
		return fmt.Errorf("own program: %w", err)
	}
	nsenter, err := exec.LookPath("/usr/bin/nsenter")
	if err != nil {
		return fmt.Errorf("%w: the node has no /usr/bin/nsenter, of util-linux: %w", roost.Unavailable, err)
	}
	args := []string{nsenter, "--preserve-credentials"}
	for i, flag := range o.Joined {
		args = append(args, fmt.Sprintf("%s=/proc/self/fd/%d", flag, firstNamespaceFD+i))
	}
	if o.Root {
		args = append(args, fmt.Sprintf("--root=/proc/self/fd/%d", rootFD))
	}
	args = append(args, "--", fmt.Sprintf("/proc/self/fd/%d", self), AgentCommand, stepBecome)
	return fmt.Errorf("exec nsenter: %w", unix.Exec(nsenter, args, []string{}))
}

// setParentDeathSignal makes the kernel kill this process when its parent ends.
func setParentDeathSignal(parent int) error {
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return err
	}
	if parent != 0 && os.Getppid() != parent {
		return fmt.Errorf("%w: the execute node's daemon has ended", roost.Unavailable)
	}
	return nil
}

// becomeTaskUser sets the task's attributes, the user's ids last, and runs the command.
func (o *agentRequest) becomeTaskUser() error {
	unix.Umask(int(o.Umask))
	o.dropCapabilities()
	if err := o.setCredentials(); err != nil {
		return err
	}
	if err := setParentDeathSignal(0); err != nil { // a change of ids has cleared it
		return err
	}
	if err := unix.Fchdir(cwdFD); err != nil {
		fmt.Fprintf(os.Stderr, "roost: the task's working directory cannot be entered: %v\n", err)
		if err := unix.Chdir("/"); err != nil {
			return err
		}
	}
	if o.Terminal {
		o.takeForeground()
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	o.setLimits()
	if o.Nice > 0 {
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, o.Nice) // it fails if the process has a higher nice value already
	}
	return o.execCommand()
}

// dropCapabilities drops capabilities that the task cannot have. Without the right to do
// so the process has none.
func (o *agentRequest) dropCapabilities() {
	for c := range 64 {
		if o.Bounding>>c&1 == 0 {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0)
		}
	}
}

// setLimits sets the task's limits last of all, as this program may need more than they
// allow. A limit that cannot be set is as low already.
func (o *agentRequest) setLimits() {
	for _, l := range o.Limits {
		// syscall's own: otherwise its exec restores the limit of open files
		_ = syscall.Setrlimit(l.Resource, &syscall.Rlimit{Cur: l.Soft, Max: l.Max})
	}
}

// setCredentials sets the user's ids and verifies them.
func (o *agentRequest) setCredentials() error {
	if !o.Change {
		return nil
	}
	uid, gid := int(o.UID), int(o.GID)
	if err := unix.Setresgid(gid, gid, gid); err != nil {
		return fmt.Errorf("gid %d: %w", gid, err)
	}
	if err := unix.Setresuid(uid, uid, uid); err != nil {
		return fmt.Errorf("uid %d: %w", uid, err)
	}
	var got [6]int
	got[0], got[1], got[2] = unix.Getresuid()
	got[3], got[4], got[5] = unix.Getresgid()
	groups, err := unix.Getgroups()
	if err != nil || got != [6]int{uid, uid, uid, gid, gid, gid} ||
		!slices.Equal(sorted(groups), sorted(ints(o.Groups))) {
		return fmt.Errorf("%w: the rights are %v with groups %v, and not those of uid %d", roost.Internal, got,
			groups, uid)
	}
	return nil
}

func sorted(list []int) []int { return slices.Sorted(slices.Values(list)) }

func ints(list []uint32) []int {
	all := make([]int, len(list))
	for i, n := range list {
		all[i] = int(n)
	}
	return all
}

// takeForeground makes the command a process group in the foreground of the terminal.
// Ctrl-C then reaches the command, and not the program that waits for it outside.
func (o *agentRequest) takeForeground() {
	if unix.Setpgid(0, 0) != nil {
		return // the session leader, which is in the foreground already
	}
	signal.Ignore(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(0, unix.TIOCSPGRP, os.Getpid())
	signal.Reset(syscall.SIGTTOU)
}
