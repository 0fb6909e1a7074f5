package starter

import (
	"syscall"
	"unsafe"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// listedCall is one entry of a syscallList, as roost-setup reads it (init/setup_amd64.S).
// All addresses are those of the process that carries out the list.
type listedCall struct {
	number    uint64 // of the system call, or listedJump
	arguments [6]uint64
	target    uint64 // where it goes on when the call fails, or the jump is taken
	result    uint64 // address of the word that gets the result of the call
}

// listedJump jumps if the word at the first argument, masked by the second, equals the
// third. A jump adds the fourth argument to the word at result.
const listedJump = ^uint64(0)

// The list is a file of three parts, which roost-setup maps at listAddress: words that
// change while it is carried out, the calls, and from listData on what the calls point
// to.
const (
	listAddress = 0x10000000
	listCalls   = 64      // offset of the first call
	listData    = 1 << 20 // offset of the data; the file has a hole before it
	callSize    = unsafe.Sizeof(listedCall{})
	maxCalls    = (listData - listCalls) / int(callSize)
)

// The words at the beginning. The first two are the report about a failure.
const (
	wordFailure = listAddress + 8*iota // error number, and behind it four bytes with the address of the call
	wordProgram                        // address of the program's path, if it was looked for
	wordFailed                         // size of the report, when a child has written one
	wordChild                          // pid of the child
	wordDenied                         // how many programs may not be executed by the user
	wordTries                          // how often the program was tried
	wordWaited                         // pid of the child, when it has ended
	wordUnused                         // result of calls that nobody needs
)

const reportSize = 16 // of a report, in bytes; one of zeros is that the program runs

// reportEnded is in the last half of a report's second word if the program has ended
// already. The first half is then its wait status.
const reportEnded = 1

// lowHalf masks the lower four bytes of a word.
const lowHalf = 1<<32 - 1

// listLabel is a place in the list that calls go to. The zero value is the next call.
type listLabel int

// syscallList is a list of system calls that is being made. Texts and other data of the
// task become arguments of calls, never calls.
type syscallList struct {
	calls    []listedCall // the target of each is a label until finish
	data     []byte
	labels   []int // the call that each label is about
	failures []listedFailure
	programs []listedProgram
	failed   listLabel  // where a call goes that must not fail
	moved    listLabel  // the same before the report was moved; 0: it was not
	invalid  startError // what cannot be listed
}

// listedFailure is what the failure of a call means.
type listedFailure struct {
	call int
	why  startError
}

// listedProgram is a path that may turn out to be the program.
type listedProgram struct {
	address uint64
	path    string
}

func newSyscallList() *syscallList {
	l := &syscallList{}
	l.clear()
	return l
}

// clear makes the list empty, and keeps its memory. It takes the failures from those who
// got them.
func (l *syscallList) clear() {
	if l.calls == nil {
		*l = syscallList{calls: make([]listedCall, 0, 128), data: make([]byte, 0, 4096), labels: make([]int, 0, 48),
			failures: make([]listedFailure, 0, 48)}
	}
	*l = syscallList{calls: l.calls[:0], data: l.data[:0], labels: append(l.labels[:0], 0),
		failures: l.failures[:0], programs: l.programs[:0]}
	l.failed = l.label()
}

// call adds a system call, and returns its index. It goes on at a label if that fails.
func (l *syscallList) call(otherwise listLabel, number uintptr, arguments ...uint64) int {
	c := listedCall{number: uint64(number), target: uint64(otherwise), result: wordUnused}
	copy(c.arguments[:], arguments)
	l.calls = append(l.calls, c)
	return len(l.calls) - 1
}

// try adds a call that may fail.
func (l *syscallList) try(number uintptr, arguments ...uint64) int {
	return l.call(0, number, arguments...)
}

// must adds a call whose failure is reported as a step of the start.
func (l *syscallList) must(step proto.StartStep, path string, number uintptr, arguments ...uint64) int {
	at := l.call(l.failed, number, arguments...)
	l.explain(at, step, path)
	return at
}

// explain notes what the failure of a call means.
func (l *syscallList) explain(call int, step proto.StartStep, path string) {
	l.failures = append(l.failures, listedFailure{call, startError{step: step, path: path}})
	if l.invalid.errno != 0 && l.invalid.step == proto.StepNone {
		l.invalid.step, l.invalid.path = step, path
	}
}

// refuse reports a failure that is none of a system call.
func (l *syscallList) refuse(step proto.StartStep, e syscall.Errno, path string) {
	report := l.words(0, 0)
	at := l.call(0, syscall.SYS_WRITE, sandboxReportFD, report, reportSize)
	l.calls[at].result = wordFailed
	put(l.data[report-listAddress-listData:], uint64(e)|l.addressOf(at)<<32)
	l.explain(at, step, path)
	l.exit()
}

// exit ends the process.
func (l *syscallList) exit() { l.try(syscall.SYS_EXIT_GROUP, 127) }

// jumpIf adds a jump that is taken if a word, masked, has a value. It returns its index.
func (l *syscallList) jumpIf(word, mask, value uint64, to listLabel) int {
	at := l.call(to, 0, word, mask, value)
	l.calls[at].number = listedJump
	return at
}

// jump adds one that is always taken.
func (l *syscallList) jump(to listLabel) int { return l.jumpIf(wordUnused, 0, 0, to) }

// jumpAdding adds one that adds a number to a word. It returns its index.
func (l *syscallList) jumpAdding(to listLabel, word, n uint64) int {
	at := l.jump(to)
	l.calls[at].arguments[3], l.calls[at].result = n, word
	return at
}

// label makes a label, which place puts before the next call.
func (l *syscallList) label() listLabel {
	l.labels = append(l.labels, 0)
	return listLabel(len(l.labels) - 1)
}

func (l *syscallList) place(label listLabel) { l.labels[label] = len(l.calls) }

// here is a label before the next call.
func (l *syscallList) here() listLabel {
	label := l.label()
	l.place(label)
	return label
}

func (l *syscallList) addressOf(call int) uint64 {
	return listAddress + listCalls + uint64(call)*uint64(callSize)
}

// argument is the address of an argument of a call, from 0.
func (l *syscallList) argument(call, n int) uint64 {
	return l.addressOf(call) + uint64(unsafe.Offsetof(listedCall{}.arguments)) + 8*uint64(n)
}

// text adds a text and returns its address.
func (l *syscallList) text(s string) uint64 {
	for i := range len(s) {
		if s[i] == 0 {
			l.invalid.errno = syscall.EINVAL
		}
	}
	at := len(l.data)
	l.data = append(append(l.data, s...), 0)
	return listAddress + listData + uint64(at)
}

// texts adds texts, and a list of their addresses that ends with a zero.
func (l *syscallList) texts(list []string) uint64 {
	addresses := make([]uint64, len(list)+1)
	for i, s := range list {
		addresses[i] = l.text(s)
	}
	return l.words(addresses...)
}

// words adds words and returns the address of the first.
func (l *syscallList) words(list ...uint64) uint64 {
	for len(l.data)%8 != 0 {
		l.data = append(l.data, 0)
	}
	at := len(l.data)
	for _, word := range list {
		l.data = append(l.data, 0, 0, 0, 0, 0, 0, 0, 0)
		put(l.data[len(l.data)-8:], word)
	}
	return listAddress + listData + uint64(at)
}

// put stores a word in the order of bytes of both architectures.
func put(at []byte, word uint64) {
	for i := range 8 {
		at[i] = byte(word >> (8 * i))
	}
}

// write ends the list and stores it in a file in memory.
func (l *syscallList) write() (fd int, why startError) {
	if why = l.finish(); why.step != proto.StepNone {
		return -1, why
	}
	fd, e := memoryFile("list")
	if e == 0 {
		if e = l.storeIn(fd); e != 0 {
			syscall.Close(fd)
		}
	}
	if e != 0 {
		return -1, startError{proto.MakeSandbox, e, "its list"}
	}
	return fd, startError{}
}

// finish ends the list.
func (l *syscallList) finish() (why startError) {
	if l.moved != 0 {
		l.reportFailure(l.failed, movedReportFD)
		l.failed = l.moved
	}
	l.reportFailure(l.failed, sandboxReportFD)
	if len(l.calls) > maxCalls {
		l.invalid = startError{proto.MakeSandbox, syscall.E2BIG, "its list"}
	}
	if l.invalid.errno != 0 {
		return l.invalid
	}
	for i := range l.calls {
		next := i + 1
		if to := l.calls[i].target; to != 0 {
			next = l.labels[to]
		}
		l.calls[i].target = l.addressOf(next)
	}
	return startError{}
}

// reportFailure places a label before what reports a failure and ends the process.
func (l *syscallList) reportFailure(label listLabel, fd uint64) {
	l.place(label)
	report := l.call(0, syscall.SYS_WRITE, fd, wordFailure, reportSize)
	l.calls[report].result = wordFailed
	l.exit()
}

// moveReport moves the pipe of the report, for the calls that follow.
func (l *syscallList) moveReport() {
	l.must(proto.Fork, "", syscall.SYS_DUP3, sandboxReportFD, movedReportFD, syscall.O_CLOEXEC)
	l.moved, l.failed = l.failed, l.label()
}

// storeIn stores the list in a file.
func (l *syscallList) storeIn(fd int) syscall.Errno {
	calls := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(l.calls))), len(l.calls)*int(callSize))
	if e := writeAt(fd, calls, listCalls); e != 0 {
		return e
	}
	return writeAt(fd, l.data, listData)
}

// sandboxFailures are what the failures of a list mean, without the list.
type sandboxFailures struct {
	list     []listedFailure
	programs []listedProgram
}

// failuresOnly is what has to be known of the list once it is stored.
func (l *syscallList) failuresOnly() sandboxFailures { return sandboxFailures{l.failures, l.programs} }

// explain turns a report into what it is about. ok: the program runs.
func (f sandboxFailures) explain(report []byte) (why startError, ok bool) {
	if len(report) != reportSize {
		return startError{proto.MakeSandbox, syscall.EIO, "it ended before it was ready"}, false
	}
	failure, program := wordAt(report, 0), wordAt(report, 8)
	if failure == 0 {
		return startError{}, true
	}
	e, call := syscall.Errno(failure&lowHalf), int(failure>>32-listAddress-listCalls)/int(callSize)
	for _, known := range f.list {
		if known.call == call {
			why = known.why
		}
	}
	if why.errno = e; why.step == proto.StepNone {
		return startError{proto.MakeSandbox, e, "its list"}, false
	}
	if why.step != proto.ExecProgram {
		return why, false
	}
	if e == syscall.EAGAIN || e == syscall.ENOMEM {
		return startError{proto.Fork, e, ""}, false
	}
	for _, p := range f.programs {
		if p.address == program {
			why.path = p.path
		}
	}
	return why, false
}

// reportedEnd returns how the program ended, if a report says so.
func reportedEnd(report []byte) (status syscall.WaitStatus, ended bool) {
	if len(report) != reportSize || wordAt(report, 0) != 0 {
		return 0, false
	}
	word := wordAt(report, 8)
	return syscall.WaitStatus(word & lowHalf), word>>32 == reportEnded
}

// wordAt reads a word of a report.
func wordAt(report []byte, at int) (n uint64) {
	for i := range 8 {
		n |= uint64(report[at+i]) << (8 * i)
	}
	return n
}
