package transfer

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/outputfile"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue/jobad"
)

// TestExpireLogs checks which output of earlier attempts of a service is removed.
func TestExpireLogs(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		index  int
		bounds jobad.LogSpec
		want   string
	}{
		"all are young": {-1, jobad.LogSpec{Size: roost.MiB, Files: 2, Retain: 100 * time.Hour},
			"0.1.err 0.1.out 0.2.out 0.3.out 1.1.out 1.9.out other"},
		"some are old": {-1, jobad.LogSpec{Size: roost.MiB, Files: 2, Retain: 150 * time.Minute},
			"0.1.err 0.2.out 0.3.out 1.9.out other"},
		"one task": {1, jobad.LogSpec{Size: roost.MiB, Files: 2}, "0.1.err 0.1.out 0.2.out 0.3.out 1.9.out other"},
		"none is kept, but for the newest": {-1, jobad.LogSpec{Size: roost.MiB, Files: 2},
			"0.1.err 0.3.out 1.9.out other"},
		"too much": {-1, jobad.LogSpec{Size: 4 * roost.KiB, Files: 1, Retain: 100 * time.Hour},
			"0.1.err 0.2.out 0.3.out 1.1.out 1.9.out other"},
	} {
		t.Run(name, func(t *testing.T) {
			s := &SpoolDir{Dir: t.TempDir()}
			dir := filepath.Join(s.Dir, "7")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			for file, age := range map[string]time.Duration{"0.1.out": 3 * time.Hour, "0.1.err": 3 * time.Hour,
				"0.2.out": 2 * time.Hour, "0.3.out": time.Hour, "1.1.out": 3 * time.Hour, "1.9.out": 3 * time.Hour,
				"other": 90 * time.Hour} {
				path := filepath.Join(dir, file)
				if err := os.WriteFile(path, make([]byte, 4<<10), 0o600); err != nil {
					t.Fatal(err)
				}
				if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.ExpireLogs(7, test.index, test.bounds, now); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			var left []string
			for _, e := range entries {
				left = append(left, e.Name())
			}
			if got := strings.Join(left, " "); got != test.want {
				t.Errorf("got %s\nwant %s", got, test.want)
			}
			if err := s.ExpireLogs(8, -1, test.bounds, now); err != nil {
				t.Errorf("a job without output: %v", err)
			}
		})
	}
}

// serviceFetch is the way home of the output of an attempt of a service.
func serviceFetch(dir, disk string, attempt roost.AttemptNumber, text string) *OutputFetch {
	a := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "submit"}.Task(0), Attempt: attempt}
	return &OutputFetch{
		FileTransfers: New(Config{Host: "submit", StateDir: dir, Log: slog.New(slog.DiscardHandler),
			Reserve: &journal.DiskReserve{Dir: disk}}),
		Attempt: a, Exited: &wire.Exited{Attempt: codec.AttemptRef(a), Status: &wire.ExitStatus{},
			Stdout: []byte(text), StdoutSize: int64(len(text)), StdoutStart: 1 << 30,
			StdoutTimes: outputfile.TimeMarks{{Time: 1000, Offset: 1<<30 + int64(len(text))}}.Encode()},
		logs: &jobad.LogSpec{Size: 64 * roost.KiB, Files: 2, Retain: time.Hour},
	}
}

// TestServiceLogs checks that the spool has what is left of a stream at its place, and
// when that was written. The attempts before stay; a full disk makes room of them, and
// does not wait.
func TestServiceLogs(t *testing.T) {
	dir, disk := t.TempDir(), t.TempDir()
	for n := range 3 {
		c := serviceFetch(dir, disk, roost.AttemptNumber(n+1), fmt.Sprintf("%d\n", n+1))
		if err := c.fetchAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	spooled := func() (names []string) {
		paths, err := filepath.Glob(filepath.Join(dir, "spool", "1", "*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			names = append(names, filepath.Base(path))
		}
		return names
	}
	if got := spooled(); !slices.Equal(got, []string{"0.1.out", "0.1.out.times", "0.2.out", "0.2.out.times", "0.3.out",
		"0.3.out.times"}) {
		t.Errorf("the spool has %v", got)
	}
	f, err := os.Open(filepath.Join(dir, "spool", "1", "0.3.out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if start, err := outputfile.DataStart(f); err != nil || start != 1<<30 {
		t.Errorf("the output begins at %d, %v", start, err)
	}
	a := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "submit"}.Task(0), Attempt: 3}
	times, err := (&SpoolDir{Dir: filepath.Join(dir, "spool")}).Times(a, false)
	if err != nil || !slices.Equal(times, outputfile.TimeMarks{{Time: 1000, Offset: 1<<30 + 2}}) {
		t.Errorf("its times are %v, %v", times, err)
	}
	if err := os.Remove(disk); err != nil { // of which nothing is free now
		t.Fatal(err)
	}
	c := serviceFetch(dir, disk, 4, "4\n")
	if err := c.spoolStream(false, strings.NewReader("4\n")); !errors.Is(err, roost.Unavailable) {
		t.Errorf("the disk is full: got %v", err)
	}
	if got := spooled(); !slices.Equal(got, []string{"0.3.out", "0.3.out.times"}) {
		t.Errorf("the disk is full, and the spool has %v", got)
	}
	if err := c.spoolStream(false, strings.NewReader("4\n")); err != nil {
		t.Errorf("the disk is still full: got %v", err)
	}
}
