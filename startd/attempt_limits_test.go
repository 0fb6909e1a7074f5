package startd

import (
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// TestLimit checks that a running attempt gets the limits that its schedd sent last. So
// does an attempt that waits for its input. Limits from another schedd have no effect.
func TestLimit(t *testing.T) {
	t.Parallel()
	p := newTestStartd(t)
	s, other := p.connect("host1", 1), p.connect("host2", 1)
	claim := s.claim()
	limit := func(s *fakeSchedd, a *wire.AttemptRef, walltime, cpu time.Duration) {
		s.send(&wire.ToStartd{Of: &wire.ToStartd_Limit{Limit: &wire.Limit{Attempt: a, WalltimeNs: int64(walltime),
			CpuNs: int64(cpu)}}})
	}
	program := s.shell("while :; do :; done")
	program.WalltimeNs = int64(time.Hour)
	a := s.activate(claim, program, false)
	s.awaitStarted(a)
	limit(other, a, time.Nanosecond, time.Nanosecond)
	limit(s, a, time.Hour, 200*time.Millisecond)
	if x := s.awaitOnlyExit(a).GetStatus(); x.GetCause() != wire.Cause_CAUSE_CPU_TIME {
		t.Errorf("CPU time: got %v", x)
	}
	s.acknowledge(a)
	for _, waits := range []bool{false, true} {
		program := s.shell("sleep 60 & wait")
		if waits {
			program.Cwd, program.Scratch = "", true
		}
		a := s.activate(claim, program, waits)
		if waits {
			if m := s.nextMessage("room for input"); m.GetInput() == nil {
				t.Fatalf("got %v", m)
			}
		} else {
			s.awaitStarted(a)
		}
		limit(s, a, 200*time.Millisecond, 0)
		if waits {
			s.send(&wire.ToStartd{Of: &wire.ToStartd_Launch{Launch: &wire.Launch{Attempt: a}}})
		}
		if x := s.awaitOnlyExit(a).GetStatus(); x.GetCause() != wire.Cause_CAUSE_WALLTIME ||
			x.GetReason() != "walltime of 200ms exceeded" {
			t.Errorf("walltime, while it waits: %v: got %v", waits, x)
		}
		s.acknowledge(a)
	}
}

// TestBounds checks that an attempt that uses more than it asked for is ended. The exit
// says what it used and what it may use, whether or not a control group counts its
// processes.
func TestBounds(t *testing.T) {
	const spin = "while :; do :; done & while :; do :; done"
	for _, test := range []struct {
		name, script string
		bounds       *wire.Bounds
		cause        wire.Cause
		signal, code int32
		reason       string
	}{
		{"cput", spin, &wire.Bounds{CpuNs: 1e9}, wire.Cause_CAUSE_CPU_TIME, 15, 0,
			"CPU time of 1s exceeded: its processes have used "},
		{"pcput", "while :; do :; done", &wire.Bounds{ProcessCpuS: 1}, wire.Cause_CAUSE_EXITED, 24,
			0, "CPU time of 1s for each process exceeded"},
		{"pcput of a child", "sh -c 'while :; do :; done'; exit $?", &wire.Bounds{ProcessCpuS: 1},
			wire.Cause_CAUSE_EXITED, 0, 152, "CPU time of 1s for each process exceeded"},
		{"vmem", "sleep 60 & sleep 60 & wait", &wire.Bounds{Virtual: 1 << 20}, wire.Cause_CAUSE_VIRTUAL, 15, 0,
			"virtual memory of 1MiB exceeded: its processes address "},
		{"pmem", "head -c 30000000 /dev/zero | (sleep 60; true) & x=$(head -c 20000000 /dev/zero | tr '\\0' a); " +
			"sleep 60", &wire.Bounds{ProcessMemory: 8 << 20},
			wire.Cause_CAUSE_MEMORY, 15, 0, "memory of 8MiB for each process exceeded: "},
		{"file", "exec head -c 100000 /dev/zero", &wire.Bounds{File: 4096}, wire.Cause_CAUSE_EXITED, 25,
			0, "size of 4KiB for each file exceeded"},
		{"enough", "i=0; while [ $i -lt 1000 ]; do i=$((i+1)); done; exit 24",
			&wire.Bounds{CpuNs: 1e12, Virtual: 1 << 40, ProcessMemory: 1 << 40, File: 1 << 20},
			wire.Cause_CAUSE_EXITED, 0, 24, ""},
	} {
		for _, enforce := range []string{"auto", "never"} {
			t.Run(test.name+" "+enforce, func(t *testing.T) {
				t.Parallel()
				p := newTestStartd(t)
				p.stop()
				p.node.Startds[0].Limits.Enforce = "never"
				if enforce == "auto" {
					p.node.Startds[0].Limits.Enforce = ""
				}
				p.start()
				s := p.connect("host1", 1)
				program := s.shell(test.script)
				program.Bounds = test.bounds
				x := s.run(s.claim(), program).GetStatus()
				if x.GetCause() != test.cause || x.GetSignal() != test.signal || x.GetCode() != test.code ||
					!strings.HasPrefix(x.GetReason(), test.reason) || test.reason == "" && x.GetReason() != "" {
					t.Errorf("got %v", x)
				}
			})
		}
	}
}
