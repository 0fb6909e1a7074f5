package starterclient_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/startd/starter/proto"
)

// TestBounds checks that the program runs with the limits of its processes. It must end
// as if started directly.
func TestBounds(t *testing.T) { runBothWays(t, testBounds) }

func testBounds(t *testing.T) {
	const limits = `grep -E "^Max (cpu time|address space|file size)" /proc/self/limits | tr -s ' ' | sort; nice`
	for _, test := range []struct {
		name, script string
		bounds       proto.ProcessLimits
		code, signal int32
		out          string
	}{
		{name: "all", script: limits, bounds: proto.ProcessLimits{CPU: 7, AddressSpace: 1 << 30,
			File: 1 << 20, Nice: 5},
			out: "Max address space 1073741824 1073741824 bytes \nMax cpu time 7 12 seconds \nMax file size 1048576 " +
				"1048576 bytes \n5\n"},
		{name: "one", script: limits, bounds: proto.ProcessLimits{File: 1 << 20},
			out: "Max address space unlimited unlimited bytes \nMax cpu time unlimited unlimited seconds \nMax file " +
				"size 1048576 1048576 bytes \n0\n"},
		{name: "nicer than may be", script: "nice", bounds: proto.ProcessLimits{Nice: -9}, out: "0\n"},
		{name: "code", script: "exit 7", bounds: proto.ProcessLimits{Nice: 1}, code: 7},
		{name: "file", script: "exec head -c 5000 /dev/zero", bounds: proto.ProcessLimits{File: 4096},
			signal: int32(syscall.SIGXFSZ), out: strings.Repeat("\x00", 4096)},
		{name: "address", script: "exec 2>/dev/null; head -c 100000000 /dev/zero | tail -n1 | wc -c",
			bounds: proto.ProcessLimits{AddressSpace: 64 << 20}, out: "0\n"},
		{name: "environment", script: "env | grep -c -e GOGC -e GOMAXPROCS; echo $PATH",
			bounds: proto.ProcessLimits{Nice: 1}, out: "0\n/usr/bin:/bin\n"},
		{name: "no signal ignored or blocked", script: "grep -E 'Sig(Ign|Blk)' /proc/self/status | tr -d '\\t'",
			bounds: proto.ProcessLimits{Nice: 1},
			out:    "SigBlk:0000000000000000\nSigIgn:0000000000000000\n"},
		{name: "descriptors", script: "ls /proc/self/fd | tr '\\n' ' '", bounds: proto.ProcessLimits{Nice: 1},
			out: "0 1 2 3 "},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := spawn(t, time.Minute)
			o := shellCmd(1, test.script)
			o.Limits = test.bounds
			b.begin(o)
			exit := b.end()
			if exit.Code != test.code || exit.Signal != test.signal || exit.Cause != proto.Exited {
				t.Errorf("got %+v, want code %d signal %d", exit, test.code, test.signal)
			}
			if got := b.read(o.Attempt, false); got != test.out {
				t.Errorf("stdout: got %q, want %q", got, test.out)
			}
		})
	}
}

// TestBoundedLaunchFailure checks that a missing program is reported as a launch failure.
// No TaskStarted may come before.
func TestBoundedLaunchFailure(t *testing.T) { runBothWays(t, testBoundedLaunchFailure) }

func testBoundedLaunchFailure(t *testing.T) {
	b := spawn(t, time.Minute)
	o := shellCmd(1, "true")
	o.Executable, o.Limits = "/no/such", proto.ProcessLimits{Nice: 1}
	if err := b.Start(o); err != nil {
		t.Fatal(err)
	}
	exit := b.end()
	if exit.Step != proto.ExecProgram || syscall.Errno(exit.Errno) != syscall.ENOENT ||
		exit.Cause != proto.LaunchFailed || !strings.Contains(exit.Reason, "/no/such") {
		t.Errorf("got %+v", exit)
	}
}
