package startd

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// emptyFilesProgram is a program that leaves so many empty files with names of 250
// letters.
func (s *fakeSchedd) emptyFilesProgram(n int) *wire.Program {
	p := s.shell(fmt.Sprintf(`name=$(printf '%%0244d' 0); seq -f "$name%%06g" 1 %d | xargs touch`, n))
	p.Scratch = true
	return p
}

// TestTooManyOutputs: an attempt that leaves more names than travel is ended with an
// error that says so. The session, and what else runs, goes on.
func TestTooManyOutputs(t *testing.T) {
	t.Parallel()
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	claim := s.claim()
	x := s.run(claim, s.emptyFilesProgram(13_000))
	want := "it left more files than can be brought back: "
	if got := x.GetStatus(); got.GetCause() != wire.Cause_CAUSE_DISK || !strings.HasPrefix(got.GetReason(), want) ||
		len(x.GetOutputs()) != 0 {
		t.Errorf("got %v with %d outputs, want %q", got, len(x.GetOutputs()), want)
	}
	named := s.emptyFilesProgram(13_000)
	named.Outputs = []string{"0*", "missing"}
	if got := s.run(claim, named).GetStatus(); got.GetCause() != wire.Cause_CAUSE_DISK ||
		!strings.HasPrefix(got.GetReason(), want) {
		t.Errorf("with patterns: got %v, want %q", got, want)
	}
	if got := s.run(claim, s.shell("exit 3")).GetStatus().GetCode(); got != 3 {
		t.Errorf("the next task: code %d", got)
	}
}

// TestWelcomeTravelsInParts checks that a long welcome comes in several messages of
// bounded size. They report what has ended while the schedd was away.
func TestWelcomeTravelsInParts(t *testing.T) {
	t.Parallel()
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	const tasks, names = 3, 3000
	for range tasks {
		s.awaitOnlyExit(s.activate(s.claim(), s.emptyFilesProgram(names), false))
	}
	s = p.connect("host1", 2)
	if size := proto.Size(s.welcome); size > rpc.PartSize+64<<10 || len(s.welcome.GetClaims()) != tasks {
		t.Errorf("a welcome of %d claims and %d bytes", len(s.welcome.GetClaims()), size)
	}
	ends := map[uint64]int{}
	for _, c := range s.welcome.GetClaims() {
		if x := c.GetExited(); x != nil {
			ends[x.GetAttempt().GetJob()] = len(x.GetOutputs())
		}
	}
	for len(ends) < tasks {
		x := s.nextMessage("the end of an attempt").GetExited()
		ends[x.GetAttempt().GetJob()] = len(x.GetOutputs())
	}
	for job, n := range ends {
		if n != names {
			t.Errorf("job %d: %d outputs, want %d", job, n, names)
		}
	}
}

// TestNameThatCannotBeSent: a process may call itself what is no text. Why it was ended
// travels all the same.
func TestNameThatCannotBeSent(t *testing.T) {
	t.Parallel()
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	prog := s.shell(
		`name=$(printf 'a\377'); cp /usr/bin/dd "./$name"; "./$name" if=/dev/zero bs=64M count=1 | sleep 100`,
	)
	prog.Scratch, prog.Bounds = true, &wire.Bounds{ProcessMemory: 32 << 20}
	got := s.run(s.claim(), prog).GetStatus()
	if got.GetCause() != wire.Cause_CAUSE_MEMORY || !utf8.ValidString(got.GetReason()) ||
		!strings.Contains(got.GetReason(), "exceeded: a\uFFFD (") {
		t.Errorf("got %v", got)
	}
}
