package starter

import (
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Bounds of signalTree.
const (
	signalPasses = 3  // how often it looks for processes that were forked past the signal
	listPasses   = 10 // how often it lists the processes until two lists agree
)

// signalTree sends a signal to every process of the task: all our descendants. It sends
// SIGKILL to the first process's group as well, in one call that no fork escapes.
func (s *starterProcess) signalTree(signal syscall.Signal) {
	if signal == syscall.SIGKILL && s.state.PID > 0 && s.pidfd >= 0 {
		syscall.Kill(-int(s.state.PID), signal) // its leader is not reaped yet, so the number cannot be reused
	}
	// roost-init accepts only signals about its parent
	s.signalEach(signal, s.startCmd.Sandbox.Wanted && signal != syscall.SIGKILL)
}

// signalEach sends a signal to all our descendants, or to all but the first process. What
// kills, stops or resumes a process goes to those as well that are forked meanwhile. Any
// other signal goes to those that are there before the first of them has it: its handler
// may start a command, and the same signal would kill that.
func (s *starterProcess) signalEach(signal syscall.Signal, spare bool) {
	sent := map[int]bool{s.server.pid: true} // the server is of no task
	if spare {
		sent[int(s.state.PID)] = true
	}
	if signal != syscall.SIGKILL && signal != syscall.SIGSTOP && signal != syscall.SIGCONT {
		s.listTree().signal(signal, sent)
		return
	}
	for range signalPasses {
		before := len(sent)
		signalBelow(syscall.Getpid(), signal, sent)
		if len(sent) == before {
			return
		}
	}
}

// signalBelow signals the descendants of a process, parents first. It does so while it
// lists them: what forks all the time is stopped before its children are listed.
func signalBelow(parent int, signal syscall.Signal, sent map[int]bool) {
	for _, pid := range children(parent) {
		processTree{list: []listedProcess{{pid, parent}}}.signal(signal, sent)
		signalBelow(pid, signal, sent)
	}
}

// processTree lists processes with the parents that they had, parents first.
type processTree struct {
	list []listedProcess
	has  map[int]bool
}

type listedProcess struct{ pid, parent int }

// listTree lists all our descendants. The kernel may leave out children of a process
// while others of its children exit (proc(5), /proc/pid/task/tid/children). So the list
// has what the task's control group has beside. Without a group it is made anew until it
// is the same twice.
func (s *starterProcess) listTree() (tree processTree) {
	self, last := syscall.Getpid(), []listedProcess(nil)
	for range listPasses {
		var once processTree
		once.addBelow(self)
		for _, p := range once.list {
			tree.add(p)
		}
		if s.group.dir != "" || slices.Equal(once.list, last) {
			break
		}
		last = once.list
	}
	if s.group.dir != "" { // others may be in the group that are not of the task, such as a shell
		for _, pid := range s.group.processes() {
			if !tree.has[pid] && isDescendant(pid, self) {
				tree.add(listedProcess{pid, parentOf(pid)})
			}
		}
	}
	return tree
}

func (t *processTree) add(p listedProcess) {
	if t.has == nil {
		t.has = map[int]bool{}
	}
	if !t.has[p.pid] {
		t.has[p.pid] = true
		t.list = append(t.list, p)
	}
}

// addBelow adds the descendants of a process.
func (t *processTree) addBelow(parent int) {
	for _, pid := range children(parent) {
		if !t.has[pid] {
			t.add(listedProcess{pid, parent})
			t.addBelow(pid)
		}
	}
}

// signal sends a signal to all processes of the list but those that have had it. It
// checks that a process is still ours after opening its pidfd, so that a new process with
// a reused pid is not hit.
func (t processTree) signal(signal syscall.Signal, sent map[int]bool) {
	self := syscall.Getpid()
	for _, p := range t.list {
		if sent[p.pid] {
			continue
		}
		fd, err := unix.PidfdOpen(p.pid, 0)
		if err != nil {
			continue // it has ended
		}
		if parentOf(p.pid) == p.parent || isDescendant(p.pid, self) {
			unix.PidfdSendSignal(fd, signal, nil, 0)
			sent[p.pid] = true
		}
		syscall.Close(fd)
	}
}

// maxDepth bounds how far up isDescendant looks.
const maxDepth = 1000

// isDescendant reports whether a process is a descendant of another.
func isDescendant(pid, ancestor int) bool {
	for range maxDepth {
		if pid = parentOf(pid); pid == ancestor {
			return true
		}
		if pid <= 1 {
			return false
		}
	}
	return false
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
