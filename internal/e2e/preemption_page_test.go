package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/roost-batch/roost/internal/document"
)

// preemptOne has a job of production displace one of the free band in a full pool of four
// cores. It returns the task that was displaced and the preemptor; both have ended then.
func preemptOne(t *testing.T, p *Pool) (victim, preemptor string) {
	t.Helper()
	dir := openDir(t)
	done := filepath.Join(dir, "done")
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, code := p.Command(t.Context(), "submit", file)
		if code != 0 {
			t.Fatalf("submit: %s%s", stdout, stderr)
		}
		return strings.TrimSpace(stdout)
	}
	var fillers []string
	for range 4 {
		fillers = append(fillers, write("free.hcl", "job \"filler\" {\n  script = \"while [ ! -e "+done+
			" ]; do sleep 0.1; done\"\n  band = \"free\"\n  memory = \"64MiB\"\n}\n"))
	}
	isRunning := func() bool {
		stdout, _, _ := p.mustQuery(t, "jobs", "--json", "@filler")
		return strings.Count(stdout, `"state": "running"`) == len(fillers)
	}
	if !pollUntil(t.Context(), awaitTimeout, isRunning) {
		why, _, _ := p.mustQuery(t, "why", fillers[3])
		t.Fatalf("the free work does not run: %s", why)
	}
	preemptor = write("urgent.hcl",
		"job \"urgent\" {\n  script = \"true\"\n  band = \"production\"\n  memory = \"64MiB\"\n}\n")
	p.awaitSuccess(t, "urgent")
	if err := os.WriteFile(done, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	p.awaitSuccess(t, "filler")
	for _, id := range fillers {
		if c := p.chainOf(t, id); len(c.Evictions) > 0 {
			victim = id
			checkEviction(t, &c, preemptor)
		}
	}
	if c := p.chainOf(t, preemptor); victim == "" || len(c.Displaced) != 1 || c.Displaced[0].Job != victim ||
		c.Displaced[0].Band != "free" {
		t.Fatalf("%q was displaced, and the preemptor says %+v", victim, c)
	}
	return victim, preemptor
}

// chainOf returns the preemption chain that roost show has of a task.
func (p *Pool) chainOf(t *testing.T, id string) document.PreemptionChain {
	t.Helper()
	stdout, stderr, _ := p.Command(t.Context(), "show", "--json", id)
	var shown struct{ Preemption document.PreemptionChain }
	if err := json.Unmarshal([]byte(stdout), &shown); err != nil {
		t.Fatalf("show %s: %v, %s", id, err, stderr)
	}
	return shown.Preemption
}

func checkEviction(t *testing.T, c *document.PreemptionChain, preemptor string) {
	t.Helper()
	e := c.Evictions[0]
	if e.Cause != "preempted" || e.Preemptor == nil || e.Preemptor.Job != preemptor || e.Preemptor.Owner == "" ||
		e.Preemptor.Band != "production" || e.NextNode == "" || e.NextTime == "" || e.Lost > e.Wall ||
		!strings.Contains(e.Reason, preemptor) {
		text, _ := json.Marshal(e) // names the preemptor, which is behind a pointer
		t.Errorf("%s was to evict it: %s", preemptor, text)
	}
}

// checkPreemptionLinks follows the links from a displaced task to its preemptor and back.
func checkPreemptionLinks(t *testing.T, b *browser, base, victim, preemptor string) {
	browse(t, b, chromedp.Navigate(base+"/tasks/"+victim+"/evictions"))
	for _, id := range []string{preemptor, victim} {
		browse(t, b, chromedp.Click(`td a[href="/jobs/`+id+`"], th a[href="/jobs/`+id+`"]`))
		browse(t, b, chromedp.WaitReady(`form.acts input[name="select"][value="`+id+`"]`))
	}
	if problems := b.takeProblems(); len(problems) > 0 {
		t.Errorf("the browser reports %q", problems)
	}
}
