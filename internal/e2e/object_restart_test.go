package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/master"
)

// TestObjectRestart kills the schedd while an output of two parts is uploaded. The part
// that was there is not uploaded again. The uploads of a task that is removed meanwhile
// are aborted.
func TestObjectRestart(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("SKIP: short: a whole pool is started")
	}
	server := newObjectServer(t, "results")
	p := newObjectPool(t, server)
	reached, parts, stuck := make(chan string, 100), [3]atomic.Int32{}, atomic.Bool{}
	stuck.Store(true)
	server.setFault(func(r *http.Request) (int, string) {
		part := r.URL.Query().Get("partNumber")
		if r.Method != http.MethodPut || part == "" {
			return 0, ""
		}
		parts[part[0]-'0'].Add(1)
		if part == "2" && stuck.Load() {
			reached <- r.URL.Path
			io.Copy(io.Discard, r.Body) // else the end of the connection is not seen
			select {
			case <-r.Context().Done(): // the machine has given up
			case <-t.Context().Done():
			}
		}
		return 0, ""
	})
	const size = 70 << 20
	script := fmt.Sprintf("head -c %d /dev/zero >x", size)
	p.submit("killed", "  outputs = { \"x\" = \"s3://results/killed\" }", script)
	await(t, reached, "/results/killed")
	if _, there := server.get("results", "killed"); there {
		t.Error("the output is there in part")
	}
	p.killSchedd()
	stuck.Store(false)
	p.awaitSuccess(t, "killed")
	if text, _ := server.get("results", "killed"); len(text) != size || strings.Trim(text, "\x00") != "" {
		t.Errorf("the output has %d bytes", len(text))
	}
	if n := parts[1].Load(); n != 1 {
		t.Errorf("the first part was uploaded %d times", n)
	}
	stuck.Store(true)
	id := p.submit("removed", "  outputs = { \"x\" = \"s3://results/removed\" }", script)
	await(t, reached, "/results/removed")
	p.mustRun(t, "rm", id)
	if !pollUntil(t.Context(), awaitTimeout, func() bool { return len(server.openUploads("results")) == 0 }) {
		t.Errorf("there are uploads of %q", server.openUploads("results"))
	}
	if _, there := server.get("results", "removed"); there {
		t.Error("a task that was removed has stored its output")
	}
	records := func() []string { list, _ := filepath.Glob(p.Dir + "/schedd/uploads/*.json"); return list }
	if !pollUntil(t.Context(), awaitTimeout, func() bool { return len(records()) == 0 }) {
		t.Errorf("there are records of uploads: %q", records())
	}
}

// await waits until a text comes.
func await(t *testing.T, from <-chan string, want string) {
	t.Helper()
	for {
		select {
		case got := <-from:
			if got == want {
				return
			}
		case <-time.After(awaitTimeout):
			t.Fatalf("%s was never reached", want)
		}
	}
}

// killSchedd kills the schedd, which the master starts again.
func (p *objectPool) killSchedd() {
	p.t.Helper()
	state, _, err := master.ReadState(p.Dir)
	if err != nil {
		p.t.Fatal(err)
	}
	at := slices.IndexFunc(state.Daemons, func(d master.DaemonState) bool { return d.Role == "schedd" })
	if err := syscall.Kill(state.Daemons[at].PID, syscall.SIGKILL); err != nil {
		p.t.Fatal(err)
	}
}
