package proto

import (
	"reflect"
	"testing"
)

func samples() []StarterMessage {
	a := TaskAttempt{Job: 1 << 60, Index: 7, Number: 3}
	exit := TaskExit{Code: -1, Signal: 9, Core: true, Cause: Walltime, Reason: "walltime", Step: OpenStdout, Errno: 13,
		Wall: 1 << 50, UserCPU: 2, SystemCPU: 3, MaxRSS: 4}
	return []StarterMessage{
		{Type: TypeStart, Start: StartCmd{
			Attempt: a, Executable: "/bin/sh", Arguments: []string{"sh", ""}, Environment: []string{"A=b"}, Cwd: "/",
			Stdin: "in", Stdout: Captured,
			Stderr: "err", Join: true, Append: true, Umask: 0o22, UID: 1<<32 - 1, GID: 2, Groups: []uint32{1, 2},
			Walltime: 5, Notice: 6, Lease: -7, WalltimeReason: "long", IO: "/io",
			Sandbox:  Sandbox{Wanted: true, TempDir: "/tmp/a", Devices: []DeviceNode{{"/dev/null", 1, 3}}},
			Restore:  RestoreSpec{Helper: []string{"roost", "agent"}, Input: "in", Output: "out", PID: "pid"},
			OOMScore: 800,
			Limits:   ProcessLimits{CPU: 9, AddressSpace: 1 << 40, File: 1 << 20, Nice: -3},
		}},
		{Type: TypeStart, Start: StartCmd{Attempt: a, Sandbox: Sandbox{Wanted: true, Image: RootImage{
			Root: "/image", Namespace: "/proc/1/ns/mnt", Writable: "/changes",
			Files: []ImageFile{{"/etc/hosts", "x", true}},
			Mounts: []ImageMount{{"/home", "ann", "/home/ann", false, false}, {"/data", "", "/in", true, false},
				{"/etc/localtime", "", "/etc/localtime", true, true}},
		}}}},
		{Type: TypeStart, Start: StartCmd{Attempt: a, Sandbox: Sandbox{Wanted: true, Namespace: "/proc/1/ns/mnt",
			Packages: []PackageMount{{"/mounts/a", "/app"}, {"/mounts/b", "/opt/b"}}}}},
		{Type: TypeStart, Start: StartCmd{Attempt: a, Sandbox: Sandbox{Wanted: true}, AppendFiles: true,
			EndSignal: EndSignal{Signal: 10, Before: 1 << 40, ProgramOnly: true}}},
		{Type: TypeStart, Start: StartCmd{Attempt: a, Sockets: []ListenSocket{{"web", "", 80}},
			EndSignal: EndSignal{Signal: 2, Before: 60e9}, Sandbox: Sandbox{Wanted: true, Image: RootImage{
				Root: "/image", Mounts: []ImageMount{{"/etc/localtime", "", "/etc/localtime", true, true}}}}}},
		{Type: TypeStop, Stop: StopCmd{Attempt: a, Cause: Vacated, Fast: true, Notice: 1, Reason: "drained",
			Signal: 12}},
		{Type: TypeSignal, Signal: SignalCmd{a, 15, false}}, {Type: TypeSignal, Signal: SignalCmd{a, 10, true}},
		{Type: TypeSuspend, Attempt: a}, {Type: TypeSuspend, Attempt: a, Enabled: true}, {Type: TypeResume, Attempt: a},
		{Type: TypeRenew, Lease: 1 << 62}, {Type: TypeRenew, Lease: 1 << 62, Until: 1 << 61},
		{Type: TypeDiscard, Attempt: a}, {Type: TypeRelease}, {Type: TypeFreeze, Enabled: true},
		{Type: TypeSetWalltime, Attempt: a, Start: StartCmd{Walltime: 1 << 60, WalltimeReason: "longer"}},
		{Type: TypeHello, State: StarterState{Phase: Ended, Attempt: a, PID: 1, Since: 2, Exit: exit, Starter: 3}},
		{Type: TypeStarted, Attempt: a, State: StarterState{PID: 10, Since: 20}},
		{Type: TypeExited, Attempt: a, State: StarterState{Exit: exit}}, {Type: TypeDiscarded, Attempt: a},
	}
}

func TestRoundTrip(t *testing.T) {
	for _, want := range samples() {
		frame := AppendFrame([]byte("before"), &want)
		body, rest, ok := SplitFrame(frame[len("before"):])
		if !ok || len(rest) != 0 {
			t.Fatalf("type %d: %d bytes are left, ok %v", want.Type, len(rest), ok)
		}
		got, ok := DecodeBody(body)
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		for cut := range len(frame) - len("before") {
			if body, _, _ := SplitFrame(frame[len("before"):][:cut]); body != nil {
				t.Errorf("type %d: %d bytes give a body", want.Type, cut)
			}
		}
	}
}

// TestReplay cuts a journal at every byte: only the complete records count.
func TestReplay(t *testing.T) {
	a, b := TaskAttempt{1, 2, 3}, TaskAttempt{1, 2, 4}
	steps := []struct {
		record StarterMessage
		want   StarterState
	}{
		{StarterMessage{Type: TypeStarted, Attempt: a}, StarterState{Phase: Running, Attempt: a}},
		{StarterMessage{Type: TypeStarted, Attempt: a, State: StarterState{PID: 9, Since: 8}},
			StarterState{Phase: Running, Attempt: a, PID: 9, Since: 8}},
		{StarterMessage{Type: TypeExited, Attempt: a, State: StarterState{Exit: TaskExit{Code: 4}}},
			StarterState{Phase: Ended, Attempt: a, PID: 9, Since: 8, Exit: TaskExit{Code: 4}}},
		{StarterMessage{Type: TypeDiscarded, Attempt: a}, StarterState{}},
		{StarterMessage{Type: TypeStarted, Attempt: b, State: StarterState{PID: 7}},
			StarterState{Phase: Running, Attempt: b, PID: 7}},
	}
	var journal []byte
	var before StarterState
	for _, step := range steps {
		start := len(journal)
		journal = AppendRecord(journal, &step.record)
		for cut := start; cut < len(journal); cut++ {
			if got := Replay(journal[:cut]); got != before {
				t.Errorf("cut at %d: got %+v, want %+v", cut, got, before)
			}
		}
		if got := Replay(journal); got != step.want {
			t.Errorf("got %+v, want %+v", got, step.want)
		}
		torn := append([]byte(nil), journal...)
		torn[len(torn)-1] ^= 1
		if got := Replay(torn); got != before {
			t.Errorf("torn: got %+v, want %+v", got, before)
		}
		before = step.want
	}
}

func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		f.Add(AppendFrame(nil, &m))
		f.Add(AppendRecord(nil, &m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		Replay(b)
		body, _, ok := SplitFrame(b)
		if !ok || body == nil {
			return
		}
		m, ok := DecodeBody(body)
		if !ok {
			return
		}
		again, _, _ := SplitFrame(AppendFrame(nil, &m))
		n, ok := DecodeBody(again)
		if !ok || !reflect.DeepEqual(m, n) {
			t.Errorf("got %+v, want %+v", n, m)
		}
	})
}
