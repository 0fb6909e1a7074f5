package condor

import (
	"strings"
	"testing"
)

const sampleLog = `000 (012.000.000) 2026-11-30 10:00:00 Job submitted from host: <a>
    DAG Node: A
...
000 (012.001.000) 2026-11-30 10:00:00 Job submitted from host: <a>
...
001 (012.000.000) 2026-11-30 10:00:01 Job executing on host: <n1>
...
005 (012.000.000) 2026-11-30 10:00:02 Job terminated.
	(1) Normal termination (return value 0)
...
009 (012.001.000) 2026-11-30 10:00:03 Job was aborted.
	by ann
...
`

// TestLogReader reads a log in pieces of every size.
func TestLogReader(t *testing.T) {
	for size := 1; size < len(sampleLog); size++ {
		var l LogReader
		var lines []string
		for at := 0; at < len(sampleLog); at += size {
			events, err := l.Add([]byte(sampleLog[at:min(at+size, len(sampleLog))]))
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events {
				lines = append(lines, e.StatusLine())
			}
		}
		want := "12.0.0 submitted, 12.1.0 submitted, 12.0.0 executing on host <n1>, 12.0.0 completed, 12.1.0 aborted"
		if got := strings.Join(lines, ", "); got != want {
			t.Fatalf("in pieces of %d: got %s, want %s", size, got, want)
		}
		if all, ended := l.Jobs(); all != 2 || ended != 2 {
			t.Fatalf("%d of %d jobs have ended", ended, all)
		}
	}
}

func TestLogReaderEnds(t *testing.T) {
	var l LogReader
	head, _, _ := strings.Cut(sampleLog, "009")
	if _, err := l.Add([]byte(head)); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[JobID]bool{{12, 0}: true, {12, 1}: false, {12, WholeCluster}: false,
		{13, WholeCluster}: false, {13, 0}: false} {
		if got := l.HasEnded(id); got != want {
			t.Errorf("%v has ended: %v, want %v", id, got, want)
		}
	}
}

func TestNoLog(t *testing.T) {
	for _, text := range []string{"hello\n...\n", "000 (a.b.c) x\n...\n", "hello\n", "005 (1.2) x\n...\n",
		strings.Repeat("x", maxLogRecord+1)} {
		if _, err := (&LogReader{}).Add([]byte(text)); err == nil {
			t.Errorf("%.20q is taken for a user log", text)
		}
	}
}
