package startd

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// awaitHealth waits for the news that an attempt is so.
func (s *fakeSchedd) awaitHealth(a *wire.AttemptRef, want wire.HealthState) *wire.TaskHealth {
	s.t.Helper()
	for {
		h := s.nextMessage("health").GetHealth()
		if h.GetAttempt().GetJob() == a.Job && h.GetState() == want {
			return h
		}
	}
}

// checkedProgram is a service that writes how it is stopped. Its check looks for a file.
func (s *fakeSchedd) checkedProgram(file string, live bool) *wire.Program {
	p := s.shell(`trap "echo stopped; exit 0" TERM; echo runs; while :; do sleep 0.05; done`)
	p.Service = &wire.ServiceProgram{DrainNs: int64(300 * time.Millisecond), Checks: []*wire.HealthCheck{{
		Name: "up", Kind: wire.HealthCheck_KIND_EXEC, Live: live, EveryNs: int64(time.Second),
		TimeoutNs: int64(20 * time.Second), // a busy machine is late
		Command:   words("sh", "-c", "test -e "+file+" || { echo no file; exit 3; }"), Fails: 1, Passes: 1,
	}}}
	return p
}

// TestTaskHealth checks that a schedd hears of each change of a task's health. A restart
// of the startd changes nothing, and a task is drained before it is stopped.
func TestTaskHealth(t *testing.T) {
	t.Parallel()
	p := newTestStartd(t)
	dir, err := os.MkdirTemp("/var/tmp", "roost") // which tasks see that have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "up")
	s := p.connect("host1", 1)
	claim := s.claim()
	a := s.activate(claim, s.checkedProgram(file, false), false)
	s.awaitHealth(a, wire.HealthState_HEALTH_STATE_STARTING)
	if h := s.awaitHealth(a, wire.HealthState_HEALTH_STATE_UNREADY); h.GetCheck() != "up" ||
		h.GetDetail() != "exit code 3: no file" || h.GetFailures() != 1 || h.GetAtNs() == 0 {
		t.Errorf("got %v", h)
	}
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s.awaitHealth(a, wire.HealthState_HEALTH_STATE_READY)
	s.send(&wire.ToStartd{Of: &wire.ToStartd_NameRight{NameRight: &wire.RenewNameRight{Attempt: a,
		Right: &wire.NameRight{ExpiresS: 7, Signature: []byte("new")}}}})
	s.awaitHealth(a, wire.HealthState_HEALTH_STATE_READY)
	p.kill()
	p.start()
	s = p.connect("host1", 2)
	s.awaitHealth(a, wire.HealthState_HEALTH_STATE_READY)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.awaitHealth(a, wire.HealthState_HEALTH_STATE_UNREADY)
	began := time.Now()
	s.vacate(a, false)
	s.awaitHealth(a, wire.HealthState_HEALTH_STATE_LEAVING)
	x := s.awaitOnlyExit(a)
	took := time.Since(began)
	if !strings.HasSuffix(string(x.GetStdout()), "stopped\n") || took < 300*time.Millisecond {
		t.Errorf("after %v: %s", took, exitText(x))
	}
}

// TestFastVacateIsNotDrained checks that a vacate that must be fast ends a drain. A check
// for "live" only asks for the end of its task.
func TestFastVacateIsNotDrained(t *testing.T) {
	t.Parallel()
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	program := s.checkedProgram("/nonexistent", true)
	program.Service.DrainNs = int64(maxTestDrain)
	a := s.activate(s.claim(), program, false)
	s.awaitHealth(a, wire.HealthState_HEALTH_STATE_FAILING)
	s.vacate(a, false)
	s.awaitHealth(a, wire.HealthState_HEALTH_STATE_LEAVING)
	began := time.Now()
	s.vacate(a, true)
	if x := s.awaitOnlyExit(a); x.GetStatus().GetSignal() != 9 || time.Since(began) > maxTestDrain/2 {
		t.Errorf("after %v: %s", time.Since(began), exitText(x))
	}
}

// TestHealthOfPorts checks that a check and the stop_url of a task find its port.
func TestHealthOfPorts(t *testing.T) {
	p := newTestStartd(t)
	s := p.connect("host1", 1)
	reply := s.withPorts(7, &wire.PortRequest{Name: "http"})
	if reply.GetClaim() == 0 {
		t.Fatal(reply.GetReason())
	}
	program := s.shell(`trap "echo stopped; exit 0" TERM; while :; do sleep 0.05; done`)
	program.Service = &wire.ServiceProgram{StopUrl: "/quit", StopPort: "http", Checks: []*wire.HealthCheck{{
		Name: "up", Kind: wire.HealthCheck_KIND_HTTP, Port: "http", Path: "/health", EveryNs: int64(time.Second),
		TimeoutNs: int64(time.Second), Fails: 1, Passes: 1,
	}}}
	a := s.activate(reply.GetClaim(), program, false)
	if h := s.awaitHealth(a, wire.HealthState_HEALTH_STATE_UNREADY); h.GetDetail() != "connection refused" {
		t.Errorf("got %v", h)
	}
	server, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", reply.GetPlaced().GetPorts()[0].GetNumber()))
	if err != nil {
		t.Fatal(err)
	}
	stops := make(chan string, 1)
	go http.Serve(server, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/quit":
			stops <- r.Method
		case "/health":
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(func() { server.Close() })
	s.awaitHealth(a, wire.HealthState_HEALTH_STATE_READY)
	s.vacate(a, false)
	s.awaitHealth(a, wire.HealthState_HEALTH_STATE_LEAVING)
	if x := s.awaitOnlyExit(a); string(x.GetStdout()) != "stopped\n" {
		t.Errorf("got %s", exitText(x))
	}
	select {
	case method := <-stops:
		if method != http.MethodPost {
			t.Errorf("/quit was asked for with %s", method)
		}
	default:
		t.Error("the task ended without a request to its stop_url")
	}
}

// maxTestDrain is longer than the test.
const maxTestDrain = 5 * time.Minute
