package view

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
)

// TestPoolFresh checks that a snapshot that took long to read is fresh for longer, and
// never until it is stale.
func TestPoolFresh(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{0: poolFresh, 50 * time.Millisecond: poolFresh,
		300 * time.Millisecond: 3 * time.Second, time.Minute: maxPoolFresh} {
		if got := (&poolSnapshot{took: took}).freshFor(); got != want || got >= poolStale {
			t.Errorf("read in %v: fresh for %v, want %v", took, got, want)
		}
	}
}

// TestPresenceHidden checks that the documents of the pool do not say whether a person is
// at a desktop.
func TestPresenceHidden(t *testing.T) {
	const ad = `Name = "d1"; State = "Owner"; LoadAvg = 3.25; OwnerBusyReason = "its owner is active"`
	for text, want := range map[string]string{
		"[" + ad + "; OwnerBusy = true; KeyboardIdle = 7]": `"owner":"its owner does not lend it now","desktop":true`,
		"[" + ad + "]": `"load":3.25`, // a server that takes no jobs now
	} {
		parsed, err := classad.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		n := poolNodeOf(parsed)
		shown, err := json.Marshal(n.Node)
		if err != nil || !strings.Contains(string(shown), want) {
			t.Errorf("%s is shown as %s, want %s (%v)", text, shown, want, err)
		}
		if n.Desktop && (strings.Contains(string(shown), "active") || strings.Contains(string(shown), "3.25") ||
			strings.Contains(strings.ToLower(string(shown)), "idle")) {
			t.Errorf("%s says whether a person is there: %s", text, shown)
		}
	}
}

// TestGoneNodes checks that a machine that is gone is down until it is back, or for a
// day.
func TestGoneNodes(t *testing.T) {
	p := &Pool{}
	at := time.Unix(1_000_000, 0)
	read := func(after time.Duration, names ...string) string {
		s := poolSnapshot{at: at.Add(after)}
		for _, name := range names {
			s.nodes = append(s.nodes, poolNode{Node: document.Node{Name: name, State: "claimed"}})
		}
		p.noteGone(&s)
		p.last = s
		text := ""
		for _, n := range s.down {
			text += fmt.Sprintf("%s %s;", n.Name, n.State)
		}
		return text
	}
	for i, step := range []struct {
		after time.Duration
		names []string
		down  string
	}{
		{0, []string{"n1", "n2", "n3"}, ""},
		{time.Hour, []string{"n1"}, "n2 down;n3 down;"},
		{2 * time.Hour, []string{"n1", "n3"}, "n2 down;"},
		{20 * time.Hour, []string{"n1"}, "n2 down;n3 down;"},
		{time.Hour + goneShown, []string{"n1"}, "n2 down;n3 down;"},
		{time.Hour + goneShown + 1, []string{"n1"}, "n3 down;"},
		{time.Hour + goneShown + 2, []string{"n1"}, "n3 down;"},
	} {
		if got := read(step.after, step.names...); got != step.down {
			t.Errorf("step %d: down are %q, want %q", i, got, step.down)
		}
	}
	p.noteGone(&poolSnapshot{err: fmt.Errorf("nothing was read")})
	if len(p.gone) != 1 {
		t.Errorf("an error changed what is gone: %v", p.gone)
	}
}
