package proto

import (
	"reflect"
	"testing"
)

func samples() []Message {
	a := Attempt{Job: 1 << 60, Index: 7, Number: 3}
	exit := Exit{Code: -1, Signal: 9, Core: true, Cause: Walltime, Reason: "walltime", Step: OpenStdout, Errno: 13, Wall: 1 << 50, UserCPU: 2, SystemCPU: 3, MaxRSS: 4}
	return []Message{
		{Type: TypeStart, Order: Order{
			Attempt: a, Executable: "/bin/sh", Arguments: []string{"sh", ""}, Environment: []string{"A=b"}, Cwd: "/", Stdin: "in", Stdout: Captured,
			Stderr: "err", Join: true, Append: true, Umask: 0o22, UID: 1<<32 - 1, GID: 2, Groups: []uint32{1, 2}, Walltime: 5, Notice: 6, Lease: -7, WalltimeReason: "long", IO: "/io",
			Box:     Box{Wanted: true, Temp: "/tmp/a", Devices: []Device{{"/dev/null", 1, 3}}},
			Restore: Restore{Helper: []string{"roost", "agent"}, Input: "in", Output: "out", PID: "pid"}, Expendable: 800,
			Bounds: Bounds{CPU: 9, Address: 1 << 40, File: 1 << 20, Nice: -3},
		}},
		{Type: TypeStop, Stop: Stop{Attempt: a, Cause: Vacated, Fast: true, Notice: 1, Reason: "drained", Signal: 12}},
		{Type: TypeSignal, Kick: Kick{a, 15, false}}, {Type: TypeSignal, Kick: Kick{a, 10, true}}, {Type: TypeSuspend, Attempt: a}, {Type: TypeSuspend, Attempt: a, On: true}, {Type: TypeResume, Attempt: a},
		{Type: TypeRenew, Lease: 1 << 62}, {Type: TypeRenew, Lease: 1 << 62, Until: 1 << 61}, {Type: TypeForget, Attempt: a}, {Type: TypeRelease}, {Type: TypeHold, On: true},
		{Type: TypeLimit, Attempt: a, Order: Order{Walltime: 1 << 60, WalltimeReason: "longer"}},
		{Type: TypeHello, State: State{Phase: Ended, Attempt: a, PID: 1, Since: 2, Exit: exit, Starter: 3}},
		{Type: TypeStarted, Attempt: a, State: State{PID: 10, Since: 20}},
		{Type: TypeExited, Attempt: a, State: State{Exit: exit}}, {Type: TypeForgot, Attempt: a},
	}
}

func TestRoundTrip(t *testing.T) {
	for _, want := range samples() {
		frame := Append([]byte("before"), &want)
		body, rest, ok := Next(frame[len("before"):])
		if !ok || len(rest) != 0 {
			t.Fatalf("type %d: %d bytes are left, ok %v", want.Type, len(rest), ok)
		}
		got, ok := Decode(body)
		if !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
		for cut := range len(frame) - len("before") {
			if body, _, _ := Next(frame[len("before"):][:cut]); body != nil {
				t.Errorf("type %d: %d bytes give a body", want.Type, cut)
			}
		}
	}
}

// TestReplay cuts a journal at every byte: what is whole counts, and nothing else.
func TestReplay(t *testing.T) {
	a, b := Attempt{1, 2, 3}, Attempt{1, 2, 4}
	steps := []struct {
		record Message
		want   State
	}{
		{Message{Type: TypeStarted, Attempt: a}, State{Phase: Running, Attempt: a}},
		{Message{Type: TypeStarted, Attempt: a, State: State{PID: 9, Since: 8}}, State{Phase: Running, Attempt: a, PID: 9, Since: 8}},
		{Message{Type: TypeExited, Attempt: a, State: State{Exit: Exit{Code: 4}}}, State{Phase: Ended, Attempt: a, PID: 9, Since: 8, Exit: Exit{Code: 4}}},
		{Message{Type: TypeForgot, Attempt: a}, State{}},
		{Message{Type: TypeStarted, Attempt: b, State: State{PID: 7}}, State{Phase: Running, Attempt: b, PID: 7}},
	}
	var journal []byte
	var before State
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
		f.Add(Append(nil, &m))
		f.Add(AppendRecord(nil, &m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		Replay(b)
		body, _, ok := Next(b)
		if !ok || body == nil {
			return
		}
		m, ok := Decode(body)
		if !ok {
			return
		}
		again, _, _ := Next(Append(nil, &m))
		n, ok := Decode(again)
		if !ok || !reflect.DeepEqual(m, n) {
			t.Errorf("got %+v, want %+v", n, m)
		}
	})
}
