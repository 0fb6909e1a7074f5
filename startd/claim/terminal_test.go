package claim

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-batch/roost"
)

// silentHost is a loop that hears nothing and never ends.
type silentHost struct{ Host }

func (silentHost) Done() <-chan struct{} { return nil }

// TestNobodyComes checks that an attempt ends if no user connects to its terminal. An
// attempt whose terminal is taken is left alone.
func TestNobodyComes(t *testing.T) {
	for _, comes := range []bool{false, true} {
		dir := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			h := &Runner{machine: &Machine{log: slog.New(slog.DiscardHandler), host: silentHost{}}}
			h.cred.UID = uint32(os.Geteuid())
			h.dirs.cred = h.cred
			a := h.machine.newAttempt(roost.AttemptID{}, h.cred, nil)
			a.record.IO, a.record.Interactive = dir, true
			if err := h.dirs.prepareTerminal(filepath.Join(dir, terminalName)); err != nil {
				t.Fatal(err)
			}
			pipe, err := os.OpenFile(filepath.Join(dir, terminalName), os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer pipe.Close()
			h.awaitTerminal(a)
			a.sessionDecided.Store(comes)
			time.Sleep(attachTimeout)
			synctest.Wait()
			a.EndInteractive(ShellEnd{Code: 5}) // so that there is something to read in any case
			text := make([]byte, 100)
			n, err := pipe.Read(text)
			want := "kill 1\nexit 5\n"
			if comes {
				want = "exit 5\n"
			}
			if err != nil || string(text[:n]) != want {
				t.Errorf("comes: %v: got %q (%v), want %q", comes, text[:n], err, want)
			}
			close(a.ended)
		})
	}
}
