package startd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/outputfile"
	"github.com/roost-batch/roost/internal/wire"
)

// TestServiceOutput has a task of a service write much more than may stay of its output.
// The oldest lines go while it runs; a reader goes on at what is left, and the end has
// that with its place in the stream.
func TestServiceOutput(t *testing.T) {
	t.Parallel()
	needHoles(t)
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	const lines, most = 60_000, 3 * 64 << 10
	prog := s.shell(fmt.Sprintf("seq 1 %d; read x <fifo; seq %d %d; echo end", lines, lines+1, lines+10))
	prog.Cwd, prog.Scratch, prog.Outputs = t.TempDir(), false, nil
	prog.Service = &wire.ServiceProgram{Logs: &wire.LogBounds{Size: 64 << 10, Files: 3}}
	fifo := filepath.Join(prog.Cwd, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	a := s.activate(s.claim(), prog, false)
	s.awaitHealth(a, wire.HealthState_HEALTH_STATE_READY)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	last := fmt.Sprintf("\n%d\n", lines)
	var text string
	var from int64
	for from == 0 || len(text) > most || !strings.HasSuffix(text, last) {
		text, from = s.tailOnce(ctx, &wire.TailRequest{Schedd: s.name, Attempt: a})
	}
	checkNumbers(t, text)
	if end, at := s.tailOnce(ctx, &wire.TailRequest{Schedd: s.name, Attempt: a, Tail: 6}); end != last[1:] ||
		at != from+int64(len(text))-6 {
		t.Errorf("the last 6 bytes are %q at %d", end, at)
	}
	before := fileTimeAfter(t, time.Now())
	text, _ = s.tailOnce(ctx, &wire.TailRequest{Schedd: s.name, Attempt: a, SinceMs: before.UnixMilli()})
	if text != "" {
		t.Errorf("since now it wrote %.40q", text)
	}
	if err := os.WriteFile(fifo, []byte("go\n"), 0); err != nil {
		t.Fatal(err)
	}
	x := s.awaitExit(a)
	if x.GetStdoutStart() < from || x.GetStdoutSize() > most || x.GetStatus().GetCause() != wire.Cause_CAUSE_EXITED {
		t.Fatalf("got %d bytes from %d, %v; before there were %d from %d", x.GetStdoutSize(), x.GetStdoutStart(),
			x.GetStatus(), len(text), from)
	}
	first, _ := outputfile.DecodeTimeMarks(x.GetStdoutTimes()).Range(before.UnixMilli(), 0)
	if want := x.GetStdoutStart() + x.GetStdoutSize() - int64(len("60001\n")*10+len("end\n")); first != want {
		t.Errorf("what it wrote last begins at %d, want %d", first, want)
	}
	left := s.fetchStdout(ctx, a)
	if int64(len(left)) != x.GetStdoutSize() || !strings.HasSuffix(left, "\nend\n") {
		t.Errorf("%d bytes came, and %d were announced; they end with %.20q", len(left), x.GetStdoutSize(),
			left[max(len(left)-20, 0):])
	}
	checkNumbers(t, strings.TrimSuffix(left, "end\n"))
}

// fileTimeAfter waits until files that are written have a time after an instant.
func fileTimeAfter(t *testing.T, at time.Time) time.Time {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	for {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.ModTime().UnixMilli() > at.UnixMilli() {
			return info.ModTime()
		}
	}
}

// needHoles skips a test where files cannot have holes.
func needHoles(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := outputfile.Trim(path, outputfile.Bounds{Size: 1 << 10, Files: 2}); errors.Is(err, roost.Unavailable) {
		t.Skip("SKIPPED: ", err)
	}
}

// checkNumbers finds the lines of a text to be numbers that follow each other.
func checkNumbers(t *testing.T, text string) {
	t.Helper()
	last := 0
	for line := range strings.Lines(text) {
		n := 0
		if _, err := fmt.Sscanf(line, "%d\n", &n); err != nil || last != 0 && n != last+1 {
			t.Fatalf("%q follows %d (%v)", line, last, err)
		}
		last = n
	}
}

// tailOnce reads what there is of a stream, and where that begins.
func (s *fakeSchedd) tailOnce(ctx context.Context, req *wire.TailRequest) (text string, from int64) {
	s.t.Helper()
	stream, err := s.client.Tail(ctx, req)
	next := int64(-1)
	for err == nil {
		var c *wire.LogChunk
		if c, err = stream.Recv(); err != nil {
			break
		}
		if next < 0 {
			from = c.GetOffset()
		} else if c.GetOffset() != next { // lines between were removed
			text, from = "", c.GetOffset()
		}
		text, next = text+string(c.GetData()), c.GetOffset()+int64(len(c.GetData()))
	}
	if err != io.EOF {
		s.t.Fatalf("tail: %v", err)
	}
	return text, from
}

// fetchStdout brings the captured output of an attempt that has ended.
func (s *fakeSchedd) fetchStdout(ctx context.Context, a *wire.AttemptRef) (text string) {
	s.t.Helper()
	stream, err := s.client.Fetch(ctx, &wire.FetchRequest{Schedd: s.name, Attempt: a, Names: []string{"\x00stdout"}})
	for err == nil {
		var c *wire.FileChunk
		if c, err = stream.Recv(); err == nil {
			text += string(c.GetData())
		}
	}
	if err != io.EOF {
		s.t.Fatalf("fetch: %v", err)
	}
	return text
}
