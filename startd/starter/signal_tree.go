package starter

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// signalPasses is how often signalTree scans again for processes that were forked during
// a scan.
const signalPasses = 3

// signalTree sends a signal to every process of the task: all our descendants. It sends
// SIGKILL to the first process's group as well, in one call that no fork escapes.
func (s *starterProcess) signalTree(signal syscall.Signal) {
	if signal == syscall.SIGKILL && s.state.PID > 0 && s.pidfd >= 0 {
		syscall.Kill(-int(s.state.PID), signal) // its leader is not reaped yet, so the number cannot be reused
	}
	// roost-init accepts only signals about its parent
	s.signalEach(signal, s.startCmd.Sandbox.Wanted && signal != syscall.SIGKILL)
}

// signalEach sends a signal to all our descendants, or to all but the first process.
func (s *starterProcess) signalEach(signal syscall.Signal, spare bool) {
	sent := map[int]bool{s.server.pid: true} // the server is of no task
	if spare {
		sent[int(s.state.PID)] = true
	}
	for range signalPasses {
		before := len(sent)
		for _, child := range children(syscall.Getpid()) {
			signalBelow(child, 0, signal, sent)
		}
		if len(sent) == before {
			return
		}
	}
}

// signalTask sends a signal to the program, or with all to everything in its sandbox.
// Even SIGKILL spares roost-init, which must collect the program's status.
func (s *starterProcess) signalTask(signal syscall.Signal, all bool) {
	if s.sandboxReport >= 0 || s.isRestoring {
		if signal > 0 {
			s.pendingSignals |= 1 << (signal - 1)
		}
		return
	}
	if all {
		s.signalEach(signal, s.startCmd.Sandbox.Wanted)
		return
	}
	s.signalProgram(signal)
}

// signalProgram sends a signal to the program itself and not to its children: it is a
// message to the program.
func (s *starterProcess) signalProgram(signal syscall.Signal) {
	pid, parent := int(s.state.PID), 0
	if s.startCmd.Sandbox.Wanted {
		below := children(pid)
		if len(below) == 0 {
			return // it has just ended
		}
		pid, parent = below[0], pid // processes that roost-init adopts later come after it
	}
	if pid <= 0 {
		return
	}
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		if parent == 0 || parentOf(pid) == parent {
			unix.PidfdSendSignal(fd, signal, nil, 0)
		}
		syscall.Close(fd)
	}
}

// signalBelow signals a process and its descendants, parents first. The pids of our own
// children cannot be reused while we do not reap them. For any other process it checks
// the parent again after opening the pidfd, so that a new process with a reused pid is
// not hit.
func signalBelow(pid, parent int, signal syscall.Signal, sent map[int]bool) {
	below := children(pid)
	if !sent[pid] {
		sent[pid] = true
		if fd, err := unix.PidfdOpen(pid, 0); err == nil {
			if p := parentOf(pid); parent == 0 || p == parent || p == syscall.Getpid() {
				unix.PidfdSendSignal(fd, signal, nil, 0)
			}
			syscall.Close(fd)
		}
	}
	for _, child := range below {
		signalBelow(child, pid, signal, sent)
	}
}

// children lists the children of all threads of a process.
func children(pid int) []int {
	tasks := "/proc/" + itoa(pid) + "/task"
	var list []int
	for _, tid := range dirNames(tasks) {
		list = append(list, parseNumbers(readAll(tasks+"/"+tid+"/children"))...)
	}
	return list
}

// parentOf reads the fourth field of stat, the second after the command in parentheses
// (proc(5)).
func parentOf(pid int) int {
	stat := readAll("/proc/" + itoa(pid) + "/stat")
	for i := len(stat) - 1; i >= 0; i-- {
		if stat[i] == ')' {
			if fields := parseNumbers(stat[min(i+3, len(stat)):]); len(fields) > 0 {
				return fields[0]
			}
		}
	}
	return -1
}

func dirNames(dir string) []string {
	fd, err := syscall.Open(dir, syscall.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	var list []string
	buffer := make([]byte, 4096)
	for {
		n, err := syscall.ReadDirent(fd, buffer)
		if err != nil || n <= 0 {
			return list
		}
		_, _, list = syscall.ParseDirent(buffer[:n], -1, list)
	}
}

func readAll(path string) []byte {
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer syscall.Close(fd)
	return readOpen(fd)
}

// readOpen reads an open file to its end.
func readOpen(fd int) []byte {
	text := make([]byte, 0, 2048)
	for {
		if len(text) == cap(text) {
			text = append(make([]byte, 0, 2*cap(text)), text...)
		}
		n, err := syscall.Read(fd, text[len(text):cap(text)])
		if err != nil || n <= 0 {
			return text
		}
		text = text[:len(text)+n]
	}
}

// parseNumbers returns the numbers in a text, separated by any other characters.
func parseNumbers(text []byte) []int {
	var list []int
	for i := 0; i < len(text); {
		if text[i] < '0' || text[i] > '9' {
			i++
			continue
		}
		n := 0
		for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
			n = n*10 + int(text[i]-'0')
		}
		list = append(list, n)
	}
	return list
}

func itoa(n int) string {
	var text [20]byte
	at := len(text)
	for {
		at--
		text[at] = byte('0' + n%10)
		if n /= 10; n <= 0 {
			return string(text[at:])
		}
	}
}
