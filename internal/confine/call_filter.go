package confine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
)

// permittedCalls are the system calls of a server in Go, of its database, and of the
// programs that it starts. An architecture lacks those that have newer names there. What
// is not among them: mounts, namespaces, other accounts, tracing, keys, modules, clocks,
// BPF, io_uring, files by handle, and new device files.
var permittedCalls = strings.Fields(`
	brk mmap munmap mprotect mremap madvise mincore msync membarrier rseq futex set_robust_list get_robust_list
	sched_yield sched_getaffinity sched_getparam sched_getscheduler sched_get_priority_min sched_get_priority_max
	nanosleep clock_nanosleep clock_gettime clock_getres gettimeofday time getrandom
	gettid getpid getppid getuid geteuid getgid getegid getgroups getresuid getresgid getpgid getpgrp getsid setsid
	setpgid uname sysinfo getcpu arch_prctl prctl capget set_tid_address restart_syscall
	rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait sigaltstack tgkill tkill kill
	timer_create timer_settime timer_gettime timer_delete timer_getoverrun setitimer getitimer alarm times getrusage
	prlimit64 getrlimit setrlimit getpriority exit exit_group wait4 waitid execve vfork pidfd_open pidfd_send_signal
	read write readv writev pread64 pwrite64 preadv pwritev preadv2 pwritev2 open openat openat2 close close_range
	dup dup2 dup3 fcntl flock fsync fdatasync sync_file_range ftruncate truncate fallocate fadvise64 readahead lseek
	stat fstat lstat newfstatat statx statfs fstatfs access faccessat faccessat2 readlink readlinkat getcwd chdir
	fchdir getdents getdents64 mkdir mkdirat rename renameat renameat2 unlink unlinkat rmdir link linkat chmod fchmod
	fchmodat umask utime utimes utimensat futimesat ioctl pipe pipe2 copy_file_range sendfile splice
	epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2 poll ppoll select
	pselect6 bind listen accept accept4 connect getsockname getpeername getsockopt setsockopt sendto recvfrom sendmsg
	recvmsg sendmmsg recvmmsg shutdown socketpair`)

// namespaceFlags are the flags of clone(2) that make namespaces.
const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWTIME

// callFilter returns the filter for a machine.
func callFilter(machine string) (f seccomp.Filter, err error) {
	info, err := arch.GetInfo(machine)
	if err != nil {
		return f, fmt.Errorf("confinement: system calls: %w: %w", roost.Unavailable, err)
	}
	var names []string
	for _, name := range permittedCalls {
		if _, known := info.SyscallNames[name]; known && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: seccomp.Policy{
		DefaultAction: seccomp.ActionErrno, // EPERM
		Syscalls: []seccomp.SyscallGroup{
			{Action: seccomp.ActionAllow, Names: names},
			{Action: seccomp.ActionAllow, NamesWithCondtions: conditionalCalls()},
			// its flags are in memory, where a filter cannot look; programs use clone(2)
			{Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS), Names: []string{"clone3"}},
		},
	}}, nil
}

// conditionalCalls are those whose arguments are looked at.
func conditionalCalls() []seccomp.NameWithConditions {
	all := []seccomp.NameWithConditions{{Name: "clone", Conditions: seccomp.ArgumentConditions{
		{Argument: 0, Operation: seccomp.BitsNotSet, Value: namespaceFlags}}}}
	for _, family := range []uint64{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6} {
		all = append(all, seccomp.NameWithConditions{Name: "socket", Conditions: seccomp.ArgumentConditions{
			{Argument: 0, Operation: seccomp.Equal, Value: family}}})
	}
	return all
}
