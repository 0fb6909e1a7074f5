package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/confine"
	"github.com/roost-batch/roost/internal/identity/login"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// TestW21WebConfined looks at the web daemon of a real pool from outside. Every thread
// has no capability, no way to new rights, and a filter of system calls, and no key of
// the pool is open. The socket that it uses gives nothing to a process without a login.
func TestW21WebConfined(t *testing.T) {
	t.Parallel()
	if missing := confine.Missing(); len(missing) > 0 {
		t.Skipf("SKIPPED: this kernel lacks %v", missing)
	}
	p := webPool(t)
	url, _, _ := strings.Cut(p.webLink(t), "/login#")
	if !pollUntil(t.Context(), awaitTimeout, func() bool { // until it serves, it is not confined
		answer, err := http.Get(url + "/healthz")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil && answer.StatusCode == http.StatusOK
	}) {
		t.Fatalf("%s serves nothing", url)
	}
	state, err := p.State()
	if err != nil {
		t.Fatal(err)
	}
	looked := 0
	for _, d := range state.Daemons {
		if d.Role == "web" || d.Role == "accountant" {
			looked++
			checkConfined(t, string(d.Role), d.PID)
		}
	}
	if looked == 0 {
		t.Fatalf("no web daemon among %+v", state.Daemons)
	}
	request, err := login.NewSocketRequest()
	if err != nil {
		t.Fatal(err)
	}
	conn, err := rpc.DialLogins("unix:"+filepath.Join(p.Dir, "run", "logins.sock"), request.Identity)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	s := wire.NewScheddClient(conn)
	_, health := s.Health(t.Context(), &wire.HealthRequest{})
	_, submit := s.Submit(t.Context(), &wire.SubmitRequest{Key: "k"})
	_, act := s.Act(t.Context(), &wire.ActRequest{Selection: &wire.Selection{Selectors: []string{"all"}}})
	_, token := s.LoginToken(t.Context(), &wire.LoginTokenRequest{Web: true})
	for what, err := range map[string]error{"health": health, "submit": submit, "act": act, "token": token} {
		if kind := rpc.KindOf(rpc.FromStatus(err)); kind != roost.PermissionDenied && kind != roost.Unauthenticated {
			t.Errorf("%s without a login: %v", what, err)
		}
	}
}

// checkConfined looks at the threads and the open files of a daemon.
func checkConfined(t *testing.T, name string, pid int) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) < 3 {
		t.Fatalf("%s: %d threads, %v", name, len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		for _, want := range []string{"NoNewPrivs:\t1\n", "Seccomp:\t2\n", "CapEff:\t0000000000000000\n",
			"CapPrm:\t0000000000000000\n", "CapInh:\t0000000000000000\n"} {
			if !strings.Contains(string(text), want) {
				t.Errorf("%s: %s has no %q", name, file, want)
			}
		}
	}
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(open) < 3 {
		t.Fatalf("%s: %d open files, %v", name, len(open), err)
	}
	for _, fd := range open {
		target, _ := os.Readlink(fd)
		if slices.Contains([]string{".key", ".pem", ".db"}, filepath.Ext(target)) && name == "web" {
			t.Errorf("%s has %s open", name, target)
		}
	}
}
