package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// submitDiamond submits a flow, and makes a package for the pages of both.
func (p *Pool) submitDiamond(t *testing.T) (id string) {
	t.Helper()
	dir := openDir(t)
	file := filepath.Join(dir, "diamond.hcl")
	text := fmt.Sprintf(`flow "diamond" {
  node "A" { job = job.step }
  node "B" {
    job   = job.step
    after = [node.A]
  }
  node "C" {
    job   = job.step
    after = [node.A]
  }
  node "D" {
    job   = job.step
    after = [node.B, node.C]
  }
}
job "step" {
  command   = ["true"]
  directory = %q
  memory    = "32MiB"
}
`, dir)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := p.Command(t.Context(), "flow", "submit", file)
	fields := strings.Fields(stdout)
	if code != 0 || len(fields) == 0 {
		t.Fatalf("flow submit: %s%s", stdout, stderr)
	}
	tool := openDir(t)
	if err := os.WriteFile(filepath.Join(tool, "hello"), []byte("#!/bin/sh\necho hello\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := p.Command(t.Context(), "package", "push", tool, "tool@1.0"); code != 0 {
		t.Fatalf("package push: %s%s", stdout, stderr)
	}
	return fields[0]
}

// checkActs removes a job by the form of its page, which asks before it does so.
func checkActs(t *testing.T, b *browser, p *Pool, base string) {
	for _, l := range looks() {
		stdout, stderr, code := p.Command(t.Context(), "run", "--detach", "--memory", "900TiB", "true")
		fields := strings.Fields(stdout)
		if code != 0 || len(fields) == 0 {
			t.Fatalf("submit: %s%s", stdout, stderr)
		}
		l.use(t, b)
		browse(t, b, chromedp.Navigate(base+"/jobs/"+fields[0]))
		browse(t, b, chromedp.Click(`form.acts button[value="rm"]`))
		browse(t, b, chromedp.WaitVisible(`p.pager button.danger`))
		b.photograph(t, "acts-"+l.name)
		b.checkAccessibility(t, l.name)
		browse(t, b, chromedp.Click(`p.pager button.danger`))
		browse(t, b, chromedp.WaitNotPresent(`p.pager button.danger`))
		browse(t, b, chromedp.WaitVisible("h1"))
		if text := browse(t, b, chromedp.Text("main")); !strings.Contains(text, "removed") {
			t.Errorf("%s: job %s is removed, and the page says %q", l.name, fields[0], text)
		}
		b.photograph(t, "act-results-"+l.name)
		b.checkAccessibility(t, l.name)
	}
	if problems := b.takeProblems(); len(problems) > 0 {
		t.Errorf("the browser reports %q", problems)
	}
}

// checkProblem opens what is not there, and the page where links of logins lead.
func checkProblem(t *testing.T, b *browser, base string) {
	for _, l := range looks() {
		l.use(t, b)
		browse(t, b, chromedp.Navigate(base+"/jobs/99999"))
		if heading := browse(t, b, chromedp.Text("h1")); heading == "" {
			t.Error("the page of a job that is not there has no heading")
		}
		b.photograph(t, "problem-"+l.name)
		b.checkAccessibility(t, l.name)
		browse(t, b, chromedp.Navigate(base+"/login"))
		b.photograph(t, "login-"+l.name)
		b.checkAccessibility(t, l.name)
	}
	b.takeProblems() // the answer is an error
}
