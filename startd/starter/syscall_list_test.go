package starter

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// testArch is an architecture on which lists are carried out: this machine's, or another
// one by an emulator.
type testArch struct {
	name                               string
	emulator                           []string
	write, exitGroup, getpid, faccess2 uintptr
}

func testArches(t *testing.T) (list []testArch) {
	for _, a := range []testArch{
		{"amd64", []string{"qemu-x86_64-static"}, 1, 231, 39, 439},
		{"arm64", []string{"qemu-aarch64-static"}, 64, 94, 172, 439},
	} {
		if a.name == runtime.GOARCH {
			a.emulator = nil
		} else if _, err := exec.LookPath(a.emulator[0]); err != nil {
			t.Logf("SKIPPED: lists of %s, as there is no %s", a.name, a.emulator[0])
			continue
		}
		list = append(list, a)
	}
	return list
}

// carryOut has roost-setup carry out a list, and returns what that wrote to the
// descriptor of the report.
func (a *testArch) carryOut(t *testing.T, l *syscallList) (report []byte, status int) {
	t.Helper()
	for i := range l.calls { // the end of each list is this machine's
		switch l.calls[i].number {
		case syscall.SYS_WRITE:
			l.calls[i].number = uint64(a.write)
		case syscall.SYS_EXIT_GROUP:
			l.calls[i].number = uint64(a.exitGroup)
		}
	}
	fd, why := l.write()
	if why.step != proto.StepNone {
		t.Fatal(why)
	}
	a.patchEnd(t, fd, l)
	list := os.NewFile(uintptr(fd), "list")
	defer list.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	program, err := filepath.Abs("init/setup_" + a.name + ".bin")
	if err != nil {
		t.Fatal(err)
	}
	args := append(a.emulator[:len(a.emulator):len(a.emulator)], program)
	c := exec.Command(args[0], args[1:]...)
	c.ExtraFiles = []*os.File{list, w}
	out, err := c.CombinedOutput()
	w.Close()
	if c.ProcessState == nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var text bytes.Buffer
	if _, err := text.ReadFrom(r); err != nil {
		t.Fatal(err)
	}
	return text.Bytes(), c.ProcessState.ExitCode()
}

// patchEnd gives the two calls that write adds at the end the numbers of the
// architecture.
func (a *testArch) patchEnd(t *testing.T, fd int, l *syscallList) {
	t.Helper()
	for i, number := range []uintptr{a.write, a.exitGroup} {
		word := make([]byte, 8)
		put(word, uint64(number))
		at := int64(l.addressOf(len(l.calls)-2+i) - listAddress)
		if e := writeAt(fd, word, at); e != 0 {
			t.Fatal(e)
		}
	}
}

// TestListIsCarriedOut: calls, jumps, sums and results are what the list says, on each
// architecture.
func TestListIsCarriedOut(t *testing.T) {
	for _, a := range testArches(t) {
		t.Run(a.name, func(t *testing.T) {
			l := newSyscallList()
			// a loop of three rounds, of which each writes a letter more
			text := l.text("abc")
			done := l.label()
			again := l.here()
			l.jumpIf(wordTries, lowHalf, 3, done)
			write := l.call(0, a.write, sandboxReportFD, text, 0)
			l.calls[write].result = wordWaited
			l.jumpAdding(l.nextLabel(), l.argument(write, 2), 1)
			l.jumpAdding(again, wordTries, 1)
			l.place(done)
			// the last write's result is two
			good := l.label()
			l.jumpIf(wordWaited, ^uint64(0), 2, good)
			l.call(0, a.exitGroup, 1)
			l.place(good)
			// the result of a call becomes the argument of the next one
			three := l.call(0, a.write, sandboxReportFD, text, 3)
			l.calls[three].result = l.argument(three+1, 0)
			l.call(0, a.exitGroup, 0)
			report, status := a.carryOut(t, l)
			if string(report) != "aababc" || status != 3 {
				t.Errorf("got %q, status %d", report, status)
			}
		})
	}
}

// nextLabel is a label of the call after the next one.
func (l *syscallList) nextLabel() listLabel {
	label := l.label()
	l.labels[label] = len(l.calls) + 1
	return label
}

// TestListReportsFailures checks the reports of calls that fail. A call that must not
// fail is reported with its error; one that may fail is not. The report gives the
// meaning.
func TestListReportsFailures(t *testing.T) {
	for _, a := range testArches(t) {
		t.Run(a.name, func(t *testing.T) {
			l := newSyscallList()
			l.try(a.write, 99, 0, 0)
			l.must(proto.EnterCwd, "not this one", a.getpid)
			l.must(proto.OpenStdin, "/no/such", a.faccess2, currentDir, l.text("/no/such"), 0, 0)
			l.must(proto.OpenStdout, "nor this", a.getpid)
			report, status := a.carryOut(t, l)
			why, ok := l.failuresOnly().explain(report)
			if want := (startError{proto.OpenStdin, syscall.ENOENT, "/no/such"}); ok || why != want || status != 127 {
				t.Errorf("got %+v, %v, status %d", why, ok, status)
			}
		})
	}
}

// TestListRefusals: a refusal is reported like a failure, and whatever is no report is
// one as well.
func TestListRefusals(t *testing.T) {
	for _, a := range testArches(t) {
		t.Run(a.name, func(t *testing.T) {
			l := newSyscallList()
			l.refuse(proto.Credentials, syscall.EPERM, "")
			report, _ := a.carryOut(t, l)
			if why, ok := l.failuresOnly().explain(report); ok ||
				why != (startError{proto.Credentials, syscall.EPERM, ""}) {
				t.Errorf("got %+v, %v", why, ok)
			}
		})
	}
	l := newSyscallList()
	l.must(proto.EnterCwd, "/", unix.SYS_GETPID)
	for _, report := range [][]byte{nil, make([]byte, 15), bytes.Repeat([]byte{0xff}, 16),
		append([]byte{2, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 8)...)} {
		if why, ok := l.failuresOnly().explain(report); ok || why.step != proto.MakeSandbox || why.errno == 0 {
			t.Errorf("%x: got %+v, %v", report, why, ok)
		}
	}
}

// TestListIsBounded checks that no text of a task makes the list too long. No text is cut
// off either.
func TestListIsBounded(t *testing.T) {
	order := func(change func(*proto.StartCmd)) *proto.StartCmd {
		o := &proto.StartCmd{Executable: "program", Arguments: []string{"program"}, Cwd: "/", IO: "/io",
			Environment: []string{"PATH=/bin"}}
		change(o)
		return o
	}
	for _, test := range []struct {
		name  string
		order *proto.StartCmd
		step  proto.StartStep
		errno syscall.Errno
	}{
		{"plain", order(func(*proto.StartCmd) {}), proto.StepNone, 0},
		{"a long search", order(func(o *proto.StartCmd) {
			o.Environment = []string{"PATH=" + strings.Repeat("/x:", maxCandidates-1)}
		}), proto.StepNone, 0},
		{"a long name", order(func(o *proto.StartCmd) {
			o.Executable = strings.Repeat("x", 4<<20)
			o.Environment = []string{"PATH=" + strings.Repeat("/x:", maxCandidates-1)}
		}), proto.StepNone, 0},
		{"too long a search", order(func(o *proto.StartCmd) {
			o.Environment = []string{"PATH=" + strings.Repeat(":", 100000)}
		}), proto.StepNone, 0},
		{"many groups", order(func(o *proto.StartCmd) {
			o.UID, o.Groups = 1000, make([]uint32, 65536)
		}), proto.StepNone, 0},
		{"zero in an argument", order(func(o *proto.StartCmd) {
			o.Arguments = []string{"program", "a\x00b"}
		}), proto.ExecProgram, syscall.EINVAL},
		{"zero in a path", order(func(o *proto.StartCmd) { o.Stdin = "a\x00b" }), proto.OpenStdin, syscall.EINVAL},
		{"zero in the directory", order(func(o *proto.StartCmd) { o.Cwd = "/\x00" }), proto.EnterCwd,
			syscall.EINVAL},
	} {
		t.Run(test.name, func(t *testing.T) {
			var l syscallList
			l.listSandbox(&sandboxServer{start: 1}, taskCgroup{fd: -1}, test.order)
			fd, why := l.write()
			if why.step == proto.StepNone {
				syscall.Close(fd)
			}
			if why.step != test.step || why.errno != test.errno {
				t.Errorf("got %+v, want step %d, %v", why, test.step, test.errno)
			}
		})
	}
	l := newSyscallList()
	for range maxCalls {
		l.exit()
	}
	if _, why := l.write(); why.step != proto.MakeSandbox || why.errno != syscall.E2BIG {
		t.Errorf("a list without end: got %+v", why)
	}
}
