package userlog

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/userfiles"
	"github.com/roost-batch/roost/schedd/queue"
)

// testAgents have one agent, with the rights of the test.
type testAgents struct{ own *userfiles.Agent }

func (a testAgents) Agent(uint32, uint32) (*userfiles.Agent, error) { return a.own, nil }

func (a testAgents) DropAgent(uint32, uint32) {}

func newTestWriter(t *testing.T) *Writer {
	t.Helper()
	a, err := userfiles.StartAgent(userfiles.UserCredential{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}, "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return NewWriter(testAgents{a}, slog.New(slog.DiscardHandler))
}

// TestWriter checks that records come into their files once and in order, also where the
// file has some of them. A FIFO gets none.
func TestWriter(t *testing.T) {
	w := newTestWriter(t)
	dir := t.TempDir()
	e := entry(queue.Started, queue.UserLogTask{Node: "a"}, queue.UserLogTask{Index: 1, Node: "a"})
	records := Records(e)
	want := ""
	for _, r := range records {
		want += r.Text
	}
	e.Path = filepath.Join(dir, "new")
	w.Enqueue(e, records, false)
	half := e
	half.Path = filepath.Join(dir, "half")
	if err := os.WriteFile(half.Path, []byte(records[0].Text), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Enqueue(half, records, true)
	fifo := e
	fifo.Path = filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo.Path, 0o600); err != nil {
		t.Fatal(err)
	}
	w.Enqueue(fifo, records, false)
	relative := e
	relative.Path = "log"
	w.Enqueue(relative, records, false)
	writeAll := func() {
		for file, row, ok := w.take(time.Now()); ok; file, row, ok = w.take(time.Now()) {
			w.write(t.Context(), file, row)
		}
	}
	writeAll()
	for _, path := range []string{e.Path, half.Path} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s has %q, %v, want %q", path, got, err, want)
		}
	}
	if row := w.rows[logFile{path: fifo.Path}]; len(w.rows) != 1 || row == nil || row.tries != 1 ||
		len(row.records) != 2 {
		t.Fatalf("left: %+v", w.rows)
	}
	for range maxTries { // then they are dropped
		w.rows[logFile{path: fifo.Path}].next = time.Time{}
		if writeAll(); len(w.rows) == 0 {
			break
		}
	}
	if len(w.rows) > 0 || w.size != 0 || len(w.byUser) > 0 {
		t.Errorf("left: %+v, %d bytes", w.rows, w.size)
	}
}

// TestJobstateLines checks that the lines of a jobstate log come into the file once. A
// crash has cut one off.
func TestJobstateLines(t *testing.T) {
	w := newTestWriter(t)
	e := queue.UserLogEntry{Path: filepath.Join(t.TempDir(), "js.log"), Job: roost.JobID{Seq: 3, Host: "h"},
		Lines: []string{"1 one", "2 two", "3 three"}}
	if err := os.WriteFile(e.Path, []byte("0 zero\n1 one\n2 t"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.Enqueue(e, Records(e), true)
	next := e
	next.Lines = []string{"4 four"}
	writeAll := func() {
		for file, row, ok := w.take(time.Now()); ok; file, row, ok = w.take(time.Now()) {
			w.write(t.Context(), file, row)
		}
	}
	writeAll()
	w.Enqueue(next, Records(next), false)
	writeAll()
	want := "0 zero\n1 one\n2 two\n3 three\n4 four\n"
	if got, err := os.ReadFile(e.Path); err != nil || string(got) != want {
		t.Errorf("the file has %q, %v, want %q", got, err, want)
	}
	if first, second := w.TakeWritten(3), w.TakeWritten(3); first != 4 || second != 0 {
		t.Errorf("%d and %d lines are written, want 4", first, second)
	}
}

// TestRun checks that records are written that come while the writer runs.
func TestRun(t *testing.T) {
	w := newTestWriter(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { w.Run(ctx); close(ended) }()
	e := entry(queue.Started, queue.UserLogTask{Node: "a"})
	e.Path = filepath.Join(t.TempDir(), "log")
	w.Enqueue(e, Records(e), false)
	for {
		w.mu.Lock()
		left := len(w.rows)
		w.mu.Unlock()
		if left == 0 {
			break
		}
		runtime.Gosched()
	}
	stop()
	<-ended
	if got, err := os.ReadFile(e.Path); err != nil || string(got) != Records(e)[0].Text {
		t.Errorf("the file has %q, %v", got, err)
	}
}

// TestWriterBounds checks that one user cannot take all the room.
func TestWriterBounds(t *testing.T) {
	w := newTestWriter(t)
	big := []Record{{Head: "x", Text: strings.Repeat("x", maxOfUser-10)}}
	e := queue.UserLogEntry{Path: "/log", UID: 7, Job: roost.JobID{Seq: 1, Host: "h"}}
	w.Enqueue(e, big, false)
	w.Enqueue(e, big, false)
	other := e
	other.UID = 8
	w.Enqueue(other, big, false)
	if w.size != 2*len(big[0].Text) || w.byUser[7] != len(big[0].Text) {
		t.Errorf("%d bytes wait, %d of the first", w.size, w.byUser[7])
	}
}
