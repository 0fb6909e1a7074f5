package transfer

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/journal"
)

// TestSpoolIsFull checks that output for which the spool has no room waits until it has.
// Then it is complete.
func TestSpoolIsFull(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "schedd", "spool", "1", "0.1.out")
	disk := filepath.Join(dir, "disk") // of which nothing is free while it is not there
	synctest.Test(t, func(t *testing.T) {
		a := roost.AttemptID{Task: roost.JobID{Seq: 1, Host: "submit"}.Task(0), Attempt: 1}
		c := OutputFetch{
			FileTransfers: New(Config{Host: "submit", StateDir: filepath.Join(dir, "schedd"),
				Log: slog.New(slog.DiscardHandler), Reserve: &journal.DiskReserve{Dir: disk}}),
			Attempt: a, Exited: &wire.Exited{Attempt: codec.AttemptRef(a), Status: &wire.ExitStatus{},
				Stdout: []byte("hello\n"), StdoutSize: 6},
		}
		done := make(chan error, 1)
		go func() { done <- c.fetchAll(t.Context()) }()
		time.Sleep(time.Minute)
		select {
		case err := <-done:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("what is left of it: %v", err)
		}
		if err := os.Mkdir(disk, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Errorf("there is room again: %v", err)
		}
		if text, err := os.ReadFile(file); string(text) != "hello\n" {
			t.Errorf("the spool has %q, %v", text, err)
		}
	})
}
