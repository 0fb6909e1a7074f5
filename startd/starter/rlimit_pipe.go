package starter

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// A program with limits is started through this program: package syscall sets no limits
// between fork and exec, and limits of the starter itself would limit the starter, too.
// So the child runs "roost-starter bound CPU ADDRESS FILE NICE SOCKETS PROGRAM
// ARGUMENT…" with the user's rights, sets the limits, and executes the program. A pipe
// that exec closes reports success by its end, and failure by its contents. A program
// that gets sockets goes the same way, because only the process itself knows its pid.

const (
	rlimitPipeArgs = 9 // with one argument of the program: its name
	resultFD       = 3
)

// rlimitPipe is the pipe of a program that is being started. The zero value is for a
// program without limits.
type rlimitPipe struct {
	program string
	pipe    [2]int
}

// newRlimitPipe changes the arguments of ForkExec so that it starts this program instead
// of the limited one.
func newRlimitPipe(o *proto.StartCmd, program *string, how *syscall.ProcAttr,
	sockets claimSockets) (arguments []string, b rlimitPipe, e syscall.Errno) {
	if o.Limits == (proto.ProcessLimits{}) && len(sockets) == 0 {
		return o.Arguments, rlimitPipe{}, 0
	}
	if err := syscall.Pipe2(b.pipe[:], syscall.O_CLOEXEC); err != nil {
		return nil, rlimitPipe{}, errno(err)
	}
	l := &o.Limits
	b.program = *program
	*program = "/proc/self/exe"
	how.Files = sockets.appendTo(append(how.Files, uintptr(b.pipe[1])), resultFD+1)
	arguments = append([]string{
		"roost-starter", "bound", itoa(int(l.CPU)), itoa(int(l.AddressSpace)), itoa(int(l.File)),
		itoa(int(min(max(l.Nice, 0), 19))), itoa(len(sockets)), b.program,
	}, o.Arguments...)
	return arguments, b, 0
}

func (b *rlimitPipe) close() {
	for i, fd := range b.pipe {
		if fd > 0 {
			syscall.Close(fd)
			b.pipe[i] = 0
		}
	}
}

// awaitExec waits until the program runs, or returns the error and the program's name.
func (b *rlimitPipe) awaitExec() (syscall.Errno, string) {
	if b.program == "" {
		return 0, ""
	}
	syscall.Close(b.pipe[1])
	b.pipe[1] = 0
	var text [2]byte
	for {
		n, err := syscall.Read(b.pipe[0], text[:])
		switch {
		case err == syscall.EINTR:
		case n == len(text):
			return syscall.Errno(int(text[0]) | int(text[1])<<8), b.program
		default:
			return 0, ""
		}
	}
}

// rlimitMain sets the limits and executes the program. Nothing is allocated once the
// address space is limited: the limit may be below what this program uses.
func rlimitMain(args []string) {
	result, environment := placeSockets(int(number(args[6])))
	program, e := syscall.BytePtrFromString(args[7])
	list, f := syscall.SlicePtrFromStrings(args[8:])
	variables, g := syscall.SlicePtrFromStrings(environment)
	if e != nil || f != nil || g != nil {
		failExec(result, syscall.EINVAL)
	}
	// Permission errors are ignored: EACCES for a nice value below the current one means
	// that the process already has less priority than requested.
	syscall.RawSyscall(syscall.SYS_SETPRIORITY, 0, 0, uintptr(number(args[5])))
	for _, l := range [...]struct {
		what  uintptr
		value uint64
		grace uint64 // between the signal at the limit and SIGKILL
	}{{unix.RLIMIT_CPU, uint64(number(args[2])), proto.CPUGrace}, {unix.RLIMIT_FSIZE, uint64(number(args[4])), 0},
		{unix.RLIMIT_AS, uint64(number(args[3])), 0}} {
		if l.value == 0 {
			continue
		}
		limit := unix.Rlimit{Cur: l.value, Max: l.value + l.grace}
		if _, _, e := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, 0, l.what, uintptr(unsafe.Pointer(&limit)), 0,
			0, 0); e != 0 && e != syscall.EPERM {
			failExec(result, e) // EPERM: a lower limit applies already
		}
	}
	for tries := 0; ; tries++ {
		_, _, e := syscall.RawSyscall(syscall.SYS_EXECVE, uintptr(unsafe.Pointer(program)),
			uintptr(unsafe.Pointer(&list[0])), uintptr(unsafe.Pointer(&variables[0])))
		if e != syscall.ETXTBSY || tries == 50 {
			failExec(result, e)
		}
		unix.Poll(nil, 2)
	}
}

// placeSockets moves the sockets to where the program looks for them, and the pipe of the
// result behind them. It returns the pipe, and the environment with the pid.
func placeSockets(n int) (result int, environment []string) {
	result, environment = resultFD, syscall.Environ()
	if n > 0 {
		result = firstSocketFD + n
		syscall.Dup3(resultFD, resultFD+n+1, syscall.O_CLOEXEC) // the sockets are one higher than they should be
		for fd := firstSocketFD; fd < firstSocketFD+n; fd++ {
			syscall.Dup3(fd+1, fd, 0)
		}
		syscall.Dup3(resultFD+n+1, result, syscall.O_CLOEXEC)
		syscall.Close(resultFD + n + 1)
		for i, v := range environment {
			if len(v) >= len(listenPID) && v[:len(listenPID)] == listenPID {
				environment[i] = listenPID + itoa(syscall.Getpid())
			}
		}
	}
	syscall.CloseOnExec(result)
	return result, environment
}

// failExec reports why the program was not executed, and exits.
func failExec(result int, e syscall.Errno) {
	text := [2]byte{byte(e), byte(e >> 8)}
	syscall.RawSyscall(syscall.SYS_WRITE, uintptr(result), uintptr(unsafe.Pointer(&text[0])), uintptr(len(text)))
	syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 127, 0, 0)
}
