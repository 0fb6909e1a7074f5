package web

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/web/simchild"
)

// TestWhatIf holds what the simulator is started with, and what becomes of its answer.
func TestWhatIf(t *testing.T) {
	w := newTestWeb(t)
	program := filepath.Join(w.dir, "simulator")
	script := "#!/bin/sh\nread cell\ncase \"$*\" in *n9*) echo 'roost: n9: there is no node of that name' >&2; " +
		"exit 68;; esac\nprintf '{\"v\":1,\"at\":1000,\"digest\":\"%s %s\"}' \"$*\" \"$cell\"\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	w.server.simulator = simchild.Simulator{Program: program}
	w.forgetLimits()
	cookie := w.logIn("ann")
	for _, c := range []struct {
		body   string
		status int
		text   string
	}{
		{`{"drain":["n1","n2"],"alter":["1.n1=cpus:2"],"span":"2h","predicted":true}`, http.StatusOK,
			`"sim whatif --json --alter=1.n1=cpus:2 --drain=n1 --drain=n2 --span=2h --predicted -- - a cell"`},
		{`{"drain":["--csv=/tmp/x"]}`, http.StatusOK, "--drain=--csv=/tmp/x -- -"},
		{`{"drain":["n9"]}`, http.StatusBadRequest, "n9: there is no node of that name"},
		{`{}`, http.StatusBadRequest, "write 1 to 64 changes"},
		{`{"drain":["a\u0000b"]}`, http.StatusBadRequest, "cannot be printed"},
		{`{"csv":["x"]}`, http.StatusBadRequest, "csv"},
	} {
		w.forgetLimits()
		answer := w.do(as(w.request("POST", "/v1/whatif", c.body), cookie))
		if answer.Code != c.status || !strings.Contains(answer.Body.String(), c.text) {
			t.Errorf("%s: %d %s, want %d with %s", c.body, answer.Code, answer.Body, c.status, c.text)
		}
	}
	w.server.simulator.Program = filepath.Join(w.dir, "missing")
	w.forgetLimits()
	answer := w.do(as(w.request("POST", "/v1/whatif", `{"drain":["n1"]}`), cookie))
	if answer.Code != http.StatusServiceUnavailable {
		t.Errorf("without a simulator: %d %s", answer.Code, answer.Body)
	}
}
