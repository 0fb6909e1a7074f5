package provision

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/provision/driver"
	"github.com/roost-batch/roost/internal/provision/plan"
	"github.com/roost-batch/roost/internal/provision/provider"
)

// TestReadEnds checks that the exit status which a script has written counts. It does not
// where the other system says that the job runs.
func TestReadEnds(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"k1.end": "0\n", "k2.end": "3\n", "k3.end": "x\n", "k5.end": "0\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := &providerWorker{settings: provider.Settings{Directory: dir}}
	answers := map[string]plan.OuterStatus{"2": {ID: "2", State: plan.OuterEnded, Text: "FAILED"},
		"3": {ID: "3", State: plan.OuterEnded, Text: "gone"}, "5": {ID: "5", State: plan.OuterRunning}}
	if err := w.readEnds(t.Context(), []string{"k1", "k2", "k3", "k4", "k5"}, []string{"1", "2", "3", "4", "5"},
		answers); err != nil {
		t.Fatal(err)
	}
	if a := answers["1"]; a.State != plan.OuterEnded || !a.Succeeded || a.Text != "exit status 0" {
		t.Errorf("%+v", a)
	}
	if a := answers["2"]; a.Succeeded || a.Text != "FAILED, exit status 3" {
		t.Errorf("%+v", a)
	}
	if a := answers["3"]; a.Succeeded || a.Text != "gone" {
		t.Errorf("%+v", a)
	}
	if a := answers["5"]; a.State != plan.OuterRunning || a.Succeeded {
		t.Errorf("a job that runs: %+v", a)
	}
	if _, ok := answers["4"]; ok {
		t.Errorf("an answer without a file")
	}
	w.dir = dir + "/none"
	if err := w.readEnds(t.Context(), []string{"k9"}, []string{"9"}, answers); err != nil {
		t.Errorf("without the directory: %v", err)
	}
}

// TestRemoveOld checks that only old files of allocations go, and none of one that lives.
func TestRemoveOld(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-30 * 24 * time.Hour)
	for _, name := range []string{"rpaaaaaaaaaaaa.out", "rpbbbbbbbbbbbb.token", "rpcccccccccccc.out", "other.out"} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if name != "rpcccccccccccc.out" {
			if err := os.Chtimes(file, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := (driver.Shell{}).RemoveOld(t.Context(), dir, keyPattern, maxAgeDays,
		[]string{"rpbbbbbbbbbbbb"}); err != nil {
		t.Fatal(err)
	}
	left, _ := filepath.Glob(filepath.Join(dir, "*"))
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if want := []string{"other.out", "rpbbbbbbbbbbbb.token", "rpcccccccccccc.out"}; !slices.Equal(left, want) {
		t.Errorf("left: %q, want %q", left, want)
	}
	if key := newKey(); len(key) != len(keyPattern) {
		t.Errorf("keys are as long as %s, and the pattern is %s", key, keyPattern)
	}
}

// countingTokens counts the tokens that it makes.
type countingTokens struct{ made int }

func (c *countingTokens) PilotToken(context.Context, *provider.Settings, int, time.Duration) (string, error) {
	c.made++
	return fmt.Sprintln("token", c.made), nil
}

// TestRenewToken checks that an allocation which waits for longer than its token is good
// gets another, once in a while.
func TestRenewToken(t *testing.T) {
	dir := t.TempDir()
	tokens := &countingTokens{}
	settings := provider.Settings{Name: "c", Directory: dir}
	p := &Provisioner{Tokens: tokens, Log: slog.New(slog.DiscardHandler), state: plan.NewProvisioning(),
		results: make(chan func(), 1)}
	p.state.SetProviders([]provider.Settings{settings})
	w := &providerWorker{settings: settings, renewedAt: map[string]time.Time{}}
	begin := time.Unix(1e9, 0)
	p.state.Begin("rpk", plan.Decision{Provider: "c", Nodes: 1, Walltime: time.Hour}, begin)
	p.state.SubmitTaken("rpk", "1", begin)
	day := 24 * time.Hour
	for _, c := range []struct {
		after time.Duration
		want  int
	}{{day, 0}, {6 * day, 1}, {7 * day, 1}, {12 * day, 2}} {
		if p.renewToken(t.Context(), "c", w, begin.Add(c.after)); w.busy {
			(<-p.results)()
		}
		if tokens.made != c.want {
			t.Errorf("after %v: %d tokens, want %d", c.after, tokens.made, c.want)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, tokenFile("rpk"))); err != nil || string(text) != "token 2\n" {
		t.Errorf("%q, %v", text, err)
	}
}
