package e2e

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/store"
	"github.com/roost-batch/roost/internal/config"
)

// reconcileLine is a line of roost report reconcile --json.
type reconcileLine struct {
	User       string
	Ledger     float64 `json:"ledger_core_hours"`
	Held       float64 `json:"held_core_hours"`
	Difference float64
	Warns      bool
}

// TestReconcile compares the accounts of a pool with its ledger. What tasks held is the
// same in both, but for the seconds between their claims and them. Then an attempt that
// nobody was granted is found, by report and metric.
func TestReconcile(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s := &accountedPool{T: t, ctx: ctx}
	dir := filepath.Join(openDir(t), "pool")
	address := "127.0.0.1:" + freePort(t)
	token := dir + ".token"
	if err := os.WriteFile(token, []byte(metricsToken), 0o600); err != nil {
		t.Fatal(err)
	}
	options := PoolOptions{Roost: program(t), Dir: dir, SharesTerminals: true, Node: &config.Node{
		Name: "host1", Dir: dir, Collector: &config.CollectorSettings{}, Negotiator: &config.NegotiatorSettings{},
		Schedd:     &config.ScheddSettings{AllowRoot: true},
		Accountant: &config.AccountantSettings{ReconcileEvery: 2 * time.Second},
		Startds: []config.StartdSettings{{AllowRoot: true, Name: "host1",
			Resources: roost.Resources{CPU: 4000, Memory: 128 * roost.MiB, Disk: roost.GiB}}},
		Metrics: &config.MetricsSettings{Accountant: address, TokenFile: token}}}
	s.start(options)
	// each task has half of the memory, so that it is worth two cores
	finish := s.pool.sleepersOf(t, "tasks", "  count = 2\n  cpus = 1\n")
	began := time.Now()
	r := s.awaitReconcile("root", func(r *reconcileLine) bool { return r.Ledger*3600 > 20 })
	// a claim is about a second older than its attempt
	most := 4*time.Since(began).Seconds() + 4
	if d := math.Abs(r.Ledger-r.Held) * 3600; d > 8 || r.Held <= 0 || r.Ledger*3600 > most {
		t.Errorf("after %v: %+v", time.Since(began), *r)
	}
	finish()
	s.pool.awaitSuccess(t, "tasks")
	out := s.command(0, "report", "reconcile", "--all", "--csv")
	if !strings.HasPrefix(out, "begin,end,user,group,ledger_") {
		t.Errorf("the report as CSV is\n%s", out)
	}
	_, errs, code := s.pool.Command(ctx, "report", "reconcile", "--month", "2001-01")
	if code != 68 || !strings.Contains(errs, "compared up to") {
		t.Errorf("the report of a time without comparisons: exit %d: %s", code, errs)
	}
	if err := s.pool.Stop(); err != nil {
		t.Fatalf("stop: %v", err)
	}
	s.addForeignAttempt(filepath.Join(dir, "accountant"))
	s.start(options)
	if r := s.awaitReconcile("mallory", func(r *reconcileLine) bool { return r.Warns }); r.Ledger != 0 || r.Held <= 0 {
		t.Errorf("the planted attempt is %+v", *r)
	}
	if !pollUntil(ctx, awaitTimeout, func() bool {
		_, values, err := metricsPage(ctx, address, metricsToken)
		return err == nil && values["roost_accountant_reconcile_ratio"] > 0.005
	}) {
		t.Error("the metric does not show the planted attempt")
	}
	if err := s.pool.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// awaitReconcile waits until a user's line of the report is as wanted.
func (s *accountedPool) awaitReconcile(user string, is func(*reconcileLine) bool) (found *reconcileLine) {
	s.Helper()
	text := ""
	if !pollUntil(s.ctx, awaitTimeout, func() bool {
		out, errs, code := s.pool.Command(s.ctx, "report", "reconcile", "--all", "--detail", "--json")
		text = out + errs
		for line := range strings.Lines(out) {
			var document struct{ Reconcile reconcileLine }
			if err := json.Unmarshal([]byte(line), &document); err != nil {
				s.Fatalf("%q: %v", line, err)
			}
			if r := &document.Reconcile; r.User == user && is(r) {
				found = r
			}
		}
		return code == 0 && found != nil
	}) {
		s.Fatalf("user %s: %s", user, text)
	}
	return found
}

// addForeignAttempt stores an attempt of a user who never had a claim. Its source is
// complete for ever, so that nothing waits for it.
func (s *accountedPool) addForeignAttempt(dir string) {
	s.Helper()
	accounts, err := store.Open(s.ctx, store.Options{Directory: dir})
	if err != nil {
		s.Fatal(err)
	}
	defer accounts.Close()
	now := accounting.MillisOf(time.Now())
	source := accounting.SourceID{7}
	job := accounting.JobEntry{JobKey: accounting.JobKey{Month: accounting.MonthOf(now), Source: source, Seq: 1},
		Host: "elsewhere", Owner: "mallory", Tasks: 1, Submitted: now, Eligible: now}
	attempt := accounting.AttemptEntry{AttemptKey: accounting.AttemptKey{JobKey: job.JobKey, Attempt: 1}, Node: "host1",
		Assigned: now, Started: now, Held: roost.Resources{CPU: 100_000}}
	if err := accounts.Ingest(s.ctx, source, "elsewhere", []accounting.FeedEntry{{Number: 1, Job: &job},
		{Number: 2, Attempt: &attempt}}); err != nil {
		s.Fatal(err)
	}
	if err := accounts.Advance(s.ctx, source, "elsewhere", now+accounting.DayMillis); err != nil {
		s.Fatal(err)
	}
}
