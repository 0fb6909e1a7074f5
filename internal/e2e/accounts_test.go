package e2e

import (
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// TestAccounts sets a rate, charges jobs by it, adjusts the statement, and refuses jobs
// when a hard budget is spent.
func TestAccounts(t *testing.T) {
	t.Parallel()
	programs := program(t, "faults") // which may take a minute
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := &accountedPool{T: t, ctx: ctx}
	s.start(PoolOptions{Roost: programs, Dir: filepath.Join(t.TempDir(), "pool"), Nodes: 1, CPUs: 2})
	s.command(0, "rate", "set", "--rule", "sum", "--core-hour", "1000000", "--from", "2026-01-01")
	s.submit(4)
	s.awaitAttempts(nil)
	s.awaitCharges()
	s.command(0, "adjustment", "add", "--user", "root", "--amount", "-0.001", "--reason", "=refund", "--request", "1")
	s.command(0, "adjustment", "add", "--user", "root", "--amount", "-0.001", "--reason", "=refund", "--request", "1")
	s.checkDayFiles()
	if out := s.command(0, "sacct", "-n", "-P", "-o", "JobIDRaw,State%3"); strings.Count(out, "|COMPLETED\n") != 4 {
		t.Errorf("sacct prints\n%s", out)
	}
	if out := s.command(0, "sacct", "--json"); !strings.Contains(out, `"current":["COMPLETED"]`) {
		t.Errorf("sacct prints\n%s", out)
	}
	s.checkTables()
	s.checkLiveAttempts()
	if out := s.command(0, "sacct", "--helpformat"); !strings.Contains(out, "MaxRSS") {
		t.Errorf("sacct lists the fields\n%s", out)
	}
	st := s.statement()
	sum := 0.0
	for _, l := range append(st.Lines, st.Adjustments...) {
		sum += l.Amount
	}
	if len(st.Adjustments) != 1 || st.Adjustments[0].Amount != -0.001 || math.Abs(st.Total-sum) > 1e-6 {
		t.Errorf("the adjusted statement is %+v", st)
	}
	if out := s.command(0, "statement", "--csv"); !strings.Contains(out, ",'=refund,") {
		t.Errorf("the formula in a reason is not quoted:\n%s", out)
	}
	s.command(0, "budget", "set", "--user", "root", "--amount", "0.01", "--hard")
	s.awaitSubmits(75, "the budget of user root is spent")
	s.command(0, "budget", "set", "--user", "root", "--amount", "none")
	s.awaitSubmits(0, "")
	s.command(75, "statement", "close", "2999-01")
	s.command(64, "budget", "set", "--user", "root", "--group", "x", "--amount", "1")
	if err := s.pool.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
}

// checkTables holds that each table has what the four attempts of one job give.
func (s *accountedPool) checkTables() {
	s.Helper()
	for table, want := range map[string]struct {
		head string
		rows int // at least
	}{"attempts": {"job,source,index,attempt,", 4}, "segments": {"job,source,index,attempt,from,", 0},
		"jobs": {"job,source,name,", 1}, "usage": {"job,source,index,attempt,node,begin,", 0},
		"machines": {"node,time,what,class,", 1}} {
		csv := s.command(0, "sacct", "--all", "--export", "csv", "--table", table)
		lines := s.command(0, "sacct", "--all", "--export", "jsonl", "--table", table)
		rows := strings.Count(csv, "\n") - 1
		if !strings.HasPrefix(csv, want.head) || rows < want.rows || strings.Count(lines, "\n") != rows {
			s.Errorf("the table %s is\n%s\nand as lines of JSON\n%s", table, csv, lines)
		}
	}
	s.command(64, "sacct", "--export", "csv", "--table", "actions")
	s.command(64, "sacct", "--export", "swf", "--table", "jobs")
}

// checkLiveAttempts holds that sacct lists a task that runs and a job that waits. Neither
// counts as one that ended.
func (s *accountedPool) checkLiveAttempts() {
	s.Helper()
	runs, _, _ := strings.Cut(s.submitCommand("sleep", "1000"), ".")
	_, err := s.pool.Client.Submit(s.ctx, &wire.SubmitRequest{Key: "waits", Jobs: []*wire.JobSpec{{Count: 3,
		Ad: `[Cmd = "/bin/true"; Iwd = "/"; RequestMemory = 1; RequestCpus = 64]`}}})
	if err != nil {
		s.Fatal(err)
	}
	var out string
	for s.ctx.Err() == nil {
		out = s.command(0, "sacct", "-n", "-P", "--state", "R,PENDING", "-o", "JobIDRaw,State,NNodes,Attempt")
		if strings.Contains(out, runs+"|RUNNING|1|1\n") && strings.Contains(out, "|PENDING|0|0\n") {
			break
		}
		waitReal(s.ctx, time.Second)
	}
	if strings.Count(out, "\n") != 2 {
		s.Errorf("sacct lists what runs and what waits as\n%s", out)
	}
	for s.ctx.Err() == nil { // a schedd that does not answer in time is named, and its rows are missing
		out = s.command(0, "sacct", "-n", "-P", "-o", "JobIDRaw,State")
		if strings.HasSuffix(out, runs+"|RUNNING\n") {
			break
		}
		waitReal(s.ctx, time.Second)
	}
	if !strings.HasSuffix(out, runs+"|RUNNING\n") {
		s.Errorf("sacct lists\n%s", out)
	}
	if out := s.command(0, "sacct", "-n", "-P", "--state", "completed", "-o", "JobIDRaw"); strings.Contains(out, runs) {
		s.Errorf("sacct lists as completed\n%s", out)
	}
	s.command(64, "sacct", "--state", "asleep")
}

// command runs a command that ends with a code, and returns what it printed.
func (s *accountedPool) command(want int, args ...string) string {
	s.Helper()
	out, errs, code := s.pool.Command(s.ctx, args...)
	if code != want {
		s.Errorf("roost %s: exit %d, want %d: %s%s", strings.Join(args, " "), code, want, out, errs)
	}
	return out
}

// printedStatement is a statement as roost statement --json prints it.
type printedStatement struct {
	Lines, Adjustments []struct{ Amount float64 }
	Total              float64
}

// statement returns root's statement of this month.
func (s *accountedPool) statement() (st printedStatement) {
	s.Helper()
	var document struct{ Statements []printedStatement }
	if err := json.Unmarshal([]byte(s.command(0, "statement", "--json", "--user", "root")), &document); err != nil {
		s.Fatal(err)
	}
	if len(document.Statements) > 0 {
		st = document.Statements[0]
	}
	return st
}

// awaitCharges waits until tasks are charged.
func (s *accountedPool) awaitCharges() {
	s.Helper()
	for s.statement().Total <= 0 {
		if s.ctx.Err() != nil {
			s.Fatal("nothing is charged")
		}
		waitReal(s.ctx, 200*time.Millisecond)
	}
}

// awaitSubmits submits until the answer is as wanted: the schedd learns of budgets a
// moment later.
func (s *accountedPool) awaitSubmits(wantCode int, wantText string) {
	s.Helper()
	for s.ctx.Err() == nil {
		_, errs, code := s.pool.Command(s.ctx, "run", "--", "true")
		if code == wantCode && strings.Contains(errs, wantText) {
			return
		}
		waitReal(s.ctx, 200*time.Millisecond)
	}
	s.Errorf("a submission never ends with %d %q", wantCode, wantText)
}
