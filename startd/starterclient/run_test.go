package starterclient_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/startd/starter/proto"
	"github.com/roost-batch/roost/startd/starterclient"
)

func TestHowTasksEnd(t *testing.T) { runBothWays(t, testHowTasksEnd) }

func testHowTasksEnd(t *testing.T) {
	for _, test := range []struct {
		name, script string
		code, signal int32
		out          string
	}{
		{name: "well", script: "echo hello", out: "hello\n"},
		{name: "code", script: "exit 7", code: 7},
		{name: "largest code", script: "exit 255", code: 255},
		{name: "signal", script: "kill -SEGV $$", signal: int32(syscall.SIGSEGV)},
		{name: "killed", script: "kill -9 $$", signal: 9},
		{name: "environment", script: "echo $PATH; env | grep -c GOGC", code: 1, out: "/usr/bin:/bin\n0\n"},
		{name: "descriptors", script: "ls /proc/self/fd | tr '\\n' ' '", out: "0 1 2 3 "},
		{name: "umask", script: "umask", out: "0022\n"},
		{name: "own session", script: "read a b c d e pgrp session rest </proc/self/stat; test $pgrp = $$ || test " +
			"$session = $$ || echo no"},
		{name: "no signal ignored", script: "grep SigIgn /proc/self/status | tr -d '\\t'",
			out: "SigIgn:0000000000000000\n"},
		{name: "no signal blocked", script: "grep SigBlk /proc/self/status | tr -d '\\t'",
			out: "SigBlk:0000000000000000\n"},
		{name: "no new privileges", script: "grep NoNewPrivs /proc/self/status | tr -d '\\t'", out: "NoNewPrivs:1\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := spawn(t, time.Minute)
			o := shellCmd(1, test.script)
			b.begin(o)
			exit := b.end()
			if exit.Code != test.code || exit.Signal != test.signal || exit.Cause != proto.Exited ||
				exit.Step != proto.StepNone {
				t.Errorf("got %+v, want code %d signal %d", exit, test.code, test.signal)
			}
			if got := b.read(o.Attempt, false); got != test.out {
				t.Errorf("stdout: got %q, want %q", got, test.out)
			}
		})
	}
}

func TestLaunchFailures(t *testing.T) { runBothWays(t, testLaunchFailures) }

func testLaunchFailures(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("#!/no/such/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		change func(*starterclient.StartCmd)
		step   proto.StartStep
		errno  syscall.Errno
		reason string
	}{
		{"no program", func(o *starterclient.StartCmd) {
			o.Executable = "/no/such"
		}, proto.ExecProgram, syscall.ENOENT, "/no/such"},
		{"not on PATH", func(o *starterclient.StartCmd) {
			o.Executable = "nosuch"
		}, proto.FindProgram, syscall.ENOENT, "cannot find the program nosuch"},
		{"no interpreter", func(o *starterclient.StartCmd) {
			o.Executable = text
		}, proto.ExecProgram, syscall.ENOENT, "interpreter"},
		{"not executable", func(o *starterclient.StartCmd) {
			o.Executable = plain
		}, proto.ExecProgram, syscall.EACCES, "permission denied"},
		{"no cwd", func(o *starterclient.StartCmd) {
			o.Cwd = "/no/dir"
		}, proto.EnterCwd, syscall.ENOENT, "/no/dir: no such file or directory"},
		{"cwd is a file", func(o *starterclient.StartCmd) {
			o.Cwd = plain
		}, proto.EnterCwd, syscall.ENOTDIR, "not a directory"},
		{"no stdin", func(o *starterclient.StartCmd) {
			o.Stdin = "nothing"
		}, proto.OpenStdin, syscall.ENOENT, "//nothing"},
		{"no directory for stdout", func(o *starterclient.StartCmd) {
			o.Stdout = "/no/dir/out"
		}, proto.OpenStdout, syscall.ENOENT, "cannot open standard output /no/dir/out: no such file"},
		{"stderr is a directory", func(o *starterclient.StartCmd) {
			o.Stderr = dir
		}, proto.OpenStderr, syscall.EISDIR, "is a directory"},
		{"too much", func(o *starterclient.StartCmd) {
			o.Arguments = []string{"sh", strings.Repeat("x", 200<<10)}
		}, proto.ExecProgram, syscall.E2BIG, "too long"},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := spawn(t, time.Minute)
			o := shellCmd(1, "true")
			test.change(&o)
			if err := b.Start(o); err != nil {
				t.Fatal(err)
			}
			exit := b.end()
			if exit.Step != test.step || syscall.Errno(exit.Errno) != test.errno || exit.Cause != proto.LaunchFailed ||
				!strings.Contains(exit.Reason, test.reason) {
				t.Errorf("got %+v (%v), want step %d errno %v reason with %q", exit, syscall.Errno(exit.Errno),
					test.step, test.errno, test.reason)
			}
			b.DiscardAttempt(o.Attempt)
			b.begin(shellCmd(2, "true"))
			b.end()
		})
	}
}

func TestOutputFiles(t *testing.T) { runBothWays(t, testOutputFiles) }

func testOutputFiles(t *testing.T) {
	dir := t.TempDir()
	b := spawn(t, time.Minute)
	o := shellCmd(1, "cat; echo out; echo err >&2")
	o.Cwd, o.Stdin, o.Stdout, o.Join = dir, "in", "both", true
	if err := os.WriteFile(filepath.Join(dir, "in"), []byte("in\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	want := "in\nout\nerr\n"
	for i, appending := range []bool{false, false, true} {
		o.Append, o.Attempt.Number = appending, uint32(i+1)
		b.begin(o)
		if exit := b.end(); exit.Code != 0 {
			t.Fatalf("got %+v", exit)
		}
		b.DiscardAttempt(o.Attempt)
		if appending {
			want += want
		}
		if got, _ := os.ReadFile(filepath.Join(dir, "both")); string(got) != want {
			t.Errorf("attempt %d: got %q, want %q", i+1, got, want)
		}
	}
}

// TestPreparedLate: a starter that prepares late empties no output that a checkpoint has
// brought meanwhile.
func TestPreparedLate(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("SKIPPED: only root makes sandboxes")
	}
	b := newSandboxedStarter(t, time.Minute)
	o := shellCmd(2, "echo found it")
	o.IO, o.Append = ioOf(b.dir, o.Attempt), true
	restored := starterclient.CapturedPath(o.IO, false)
	if err := errors.Join(os.Mkdir(o.IO, 0o711), os.WriteFile(restored, []byte("up\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	prepared := starterclient.StartCmd{UID: o.UID, IO: o.IO, Stdout: starterclient.Captured,
		Stderr: starterclient.Captured}
	prepared.Sandbox.Wanted = true
	if err := b.Prepare(prepared); err != nil {
		t.Fatal(err)
	}
	b.begin(o)
	b.end()
	if got := b.read(o.Attempt, false); got != "up\nfound it\n" {
		t.Errorf("got %q", got)
	}
}

func TestBusyAndRepeatedStart(t *testing.T) { runBothWays(t, testBusyAndRepeatedStart) }

func testBusyAndRepeatedStart(t *testing.T) {
	b := spawn(t, time.Minute)
	first, second := shellCmd(1, "exec sleep 60"), shellCmd(2, "true")
	pid := b.begin(first)
	if again := b.begin(first); again != pid {
		t.Errorf("the same order again: got pid %d, want %d", again, pid)
	}
	b.Start(second)
	if exit := b.end(); exit.Step != proto.Busy || exit.Cause != proto.Machine {
		t.Errorf("got %+v, want busy", exit)
	}
	b.Vacate(starterclient.StopCmd{Attempt: second.Attempt, Cause: proto.Removed, Fast: true}) // not the one that runs
	b.Vacate(starterclient.StopCmd{Attempt: first.Attempt, Cause: proto.Removed, Fast: true, Reason: "removed"})
	if exit := b.end(); exit.Signal != 9 || exit.Cause != proto.Removed || exit.Reason != "removed" {
		t.Errorf("got %+v, want removed", exit)
	}
}
