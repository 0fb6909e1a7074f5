package submitfilter

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/schedd/queue"
)

// newFilter returns a filter whose program is a shell script.
func newFilter(t *testing.T, script string) *Filter {
	t.Helper()
	dir, err := os.MkdirTemp("", "roost-filter") // others may enter it, unlike t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "filter")
	text := []byte("#!/bin/sh\n" + script + "\n")
	if err := errors.Join(os.Chmod(dir, 0o755), os.WriteFile(path, text, 0o755)); err != nil {
		t.Fatal(err)
	}
	return New("n1", config.SubmitFilter{Program: path, Timeout: time.Minute, User: "nobody"}, nil,
		slog.New(slog.DiscardHandler))
}

func someJobs(t *testing.T) []queue.SubmitSpec {
	t.Helper()
	var specs []queue.SubmitSpec
	for _, text := range []string{`[Cmd = "/bin/true"; Rank = TARGET.Speed]`, `[Cmd = "/bin/sleep"; JobPrio = 1]`} {
		ad, err := classad.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, queue.SubmitSpec{Ad: ad, Count: 2})
	}
	return specs
}

// TestAnswers checks what becomes of two jobs by what a filter does.
func TestAnswers(t *testing.T) {
	const unchanged = `[ Cmd = "/bin/true"; Rank = TARGET.Speed ] [ Cmd = "/bin/sleep"; JobPrio = 1 ]`
	for _, test := range []struct {
		what, script string
		kind         error
		want         string // what the error contains, or else the jobs
	}{
		{"nothing is printed", "cat >/dev/null", nil, unchanged},
		{"its input is not read", "exit 0", nil, unchanged},
		{"it leaves a process behind", "cat >/dev/null; sleep 1000 & exit 0", nil, unchanged},
		{"changes", `cat >/dev/null; echo '{"version":1,"message":"x","jobs":[{"index":1,"changes":` +
			`{"JobPrio":null,"Requirements":"\/Expr(TARGET.Site == \"lab\")\/"}},` +
			`{"index":1,"changes":{"Band":"free"}}]}'`,
			nil, `[ Cmd = "/bin/true"; Rank = TARGET.Speed ] ` +
				`[ Band = "free"; Cmd = "/bin/sleep"; Requirements = TARGET.Site == "lab" ]`},
		{"refusal on standard error", "echo no >&2; echo yes; exit 1", roost.PermissionDenied,
			"n1: permission denied: no"},
		{"refusal on standard output", "printf 'not\\nhere'; exit 1", roost.PermissionDenied, "not here"},
		{"refusal without a word", "exit 1", roost.PermissionDenied, "it gives no reason"},
		{"another status", "echo broken >&2; exit 2", roost.Unavailable, "exit status 2: broken"},
		{"a signal", "kill -9 $$", roost.Unavailable, "signal: killed"},
		{"no JSON", "echo hello", roost.Unavailable, "not as roost-node(5) describes"},
		{"a later version", `echo '{"version": 2}'`, roost.Unavailable, "version 2"},
		{"a job that is not there", `echo '{"jobs":[{"index":2,"changes":{"JobPrio":1}}]}'`, roost.Unavailable,
			"indexes go from 0 to 1"},
		{"no index", `echo '{"jobs":[{"changes":{"JobPrio":1}}]}'`, roost.Unavailable, "indexes go from 0 to 1"},
		{"another owner", `echo '{"jobs":[{"index":0,"changes":{"Owner":"root"}}]}'`, roost.Unavailable,
			"changes Owner"},
		{"half of it is wrong", `echo '{"jobs":[{"index":0,"changes":{"JobPrio":1}},` +
			`{"index":1,"changes":{"OwnerUid":0}}]}'`, roost.Unavailable, "says what a job is"},
		{"too much", "cat >/dev/null; head -c 20000000 /dev/zero", roost.Unavailable, "more than 16777216 bytes"},
	} {
		specs := someJobs(t)
		err := newFilter(t, test.script).FilterSubmission(t.Context(), queue.CallerIdentity{User: "ann"}, specs)
		if test.kind != nil {
			if !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: got %v, want %q", test.what, err, test.want)
			}
			test.want = unchanged
		} else if err != nil {
			t.Errorf("%s: %v", test.what, err)
		}
		var after []string
		for _, s := range specs {
			after = append(after, s.Ad.String())
		}
		if got := strings.Join(after, " "); sorted(t, got) != sorted(t, test.want) {
			t.Errorf("%s: the jobs are %s, want %s", test.what, got, test.want)
		}
	}
}

// sorted returns ads in one line with their attributes in order.
func sorted(t *testing.T, text string) (all string) {
	t.Helper()
	for _, one := range strings.SplitAfter(text, " ]") {
		if strings.TrimSpace(one) == "" {
			continue
		}
		ad, err := classad.Parse(one)
		if err != nil {
			t.Fatal(err)
		}
		form, err := json.Marshal(ad)
		var attributes map[string]any
		if err := errors.Join(err, json.Unmarshal(form, &attributes)); err != nil {
			t.Fatal(err)
		}
		all += fmt.Sprint(attributes) // maps are printed in order
	}
	return all
}

// TestDocument checks what a filter reads, and that it has the rights of its user.
func TestDocument(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o777), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	f := newFilter(t, `cat >`+dir+`/document; env >`+dir+`/env; id -u >`+dir+`/uid; echo "$1" >`+dir+`/arguments`)
	t.Setenv("ROOST_SECRET_OF_DAEMON", "x")
	who := queue.CallerIdentity{User: "ann", UID: 1001, GID: 1002}
	if err := f.FilterSubmission(t.Context(), who, someJobs(t)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "document"))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"version":1,"event":"submit","node":"n1","user":"ann","uid":1001,"gid":1002,"jobs":[` +
		`{"tasks":2,"ad":{"Cmd":"/bin/true","Rank":"\/Expr(TARGET.Speed)\/"}},` +
		`{"tasks":2,"ad":{"Cmd":"/bin/sleep","JobPrio":1}}]}`
	if got := string(text); got != want {
		t.Errorf("it reads %s\nwant %s", got, want)
	}
	environment, _ := os.ReadFile(filepath.Join(dir, "env"))
	if s := string(environment); strings.Contains(s, "SECRET") || !strings.Contains(s, "ROOST_NODE=n1") {
		t.Errorf("its environment: %s", s)
	}
	if uid, _ := os.ReadFile(filepath.Join(dir, "uid")); os.Geteuid() == 0 && strings.TrimSpace(string(uid)) == "0" {
		t.Error("it has the rights of root")
	}
	if err := f.CheckAlteration(t.Context(), who, "7.n1", 1, someJobs(t)[0].Ad, someJobs(t)[1].Ad); err != nil {
		t.Fatal(err)
	}
	text, _ = os.ReadFile(filepath.Join(dir, "document"))
	if s := string(text); !strings.Contains(s, `"event":"alter"`) || !strings.Contains(s,
		`"jobs":[{"id":"7.n1","tasks":1,"ad":{"Cmd":"/bin/true"`) || !strings.Contains(s, `"changes":{"Cmd":"/bin/sleep"`) {
		t.Errorf("of an alteration it reads %s", s)
	}
	f = newFilter(t, `echo '{"jobs":[{"index":0,"changes":{}}]}'`)
	if err := f.CheckAlteration(t.Context(), who, "7.n1", 1, someJobs(t)[0].Ad, someJobs(t)[1].Ad); !errors.Is(err,
		roost.Unavailable) {
		t.Errorf("a filter that changes an alteration: %v", err)
	}
}

// TestSample runs the sample that is installed.
func TestSample(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("SKIPPED: there is no python3")
	}
	sample, err := os.ReadFile("../../etc/hooks/submit-filter")
	if err != nil {
		t.Fatal(err)
	}
	f := newFilter(t, "")
	if err := os.WriteFile(f.settings.Program, sample, 0o755); err != nil {
		t.Fatal(err)
	}
	specs := someJobs(t)
	specs[1].Ad.SetInt(roost.AttrWalltime, 600)
	if err := f.FilterSubmission(t.Context(), queue.CallerIdentity{User: "ann"}, specs); err != nil {
		t.Fatal(err)
	}
	if n, _ := specs[0].Ad.Int(roost.AttrWalltime); n != 24*3600 {
		t.Errorf("the walltime of a job without one is %d s", n)
	}
	if to, _ := specs[1].Ad.Str(roost.AttrQueue); to != "short" {
		t.Errorf("a short job goes to queue %q", to)
	}
	specs = someJobs(t)
	specs[1].Ad.SetInt(roost.AttrRequestGpus, 1)
	if err := f.FilterSubmission(t.Context(), queue.CallerIdentity{User: "ann"}, specs); !errors.Is(err,
		roost.PermissionDenied) || !strings.Contains(err.Error(), "job 1 asks for GPUs and has no walltime") {
		t.Errorf("a job with a GPU and no walltime: %v", err)
	}
}

// TestBounds checks that a filter that hangs is killed with what it started. One which
// others can write is not run.
func TestBounds(t *testing.T) {
	f := newFilter(t, "sleep 1000 & sleep 1000")
	f.settings.Timeout = 300 * time.Millisecond
	began := time.Now()
	err := f.FilterSubmission(t.Context(), queue.CallerIdentity{}, someJobs(t))
	if !errors.Is(err, roost.Unavailable) || !strings.Contains(err.Error(), "not done in 300ms") {
		t.Errorf("one that hangs: %v", err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	f = newFilter(t, "exit 0")
	if err := os.Chmod(f.settings.Program, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := f.FilterSubmission(t.Context(), queue.CallerIdentity{}, someJobs(t)); !errors.Is(err,
		roost.Unavailable) || !strings.Contains(err.Error(), "others may write there") {
		t.Errorf("one that others may write: %v", err)
	}
	if os.Geteuid() == 0 {
		f = newFilter(t, "exit 0")
		f.settings.User = "no-such-user"
		if err := f.FilterSubmission(t.Context(), queue.CallerIdentity{}, someJobs(t)); !errors.Is(err,
			roost.Unavailable) {
			t.Errorf("one whose user does not exist: %v", err)
		}
	}
	var none *Filter
	if err := none.FilterSubmission(t.Context(), queue.CallerIdentity{}, someJobs(t)); err != nil {
		t.Errorf("no filter: %v", err)
	}
}
