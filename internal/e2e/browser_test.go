package e2e

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is Chromium without a window. It records what the console of a reader would
// show: errors of scripts, and what the content security policy has refused.
type browser struct {
	context.Context
	mu       sync.Mutex
	problems []string
	looked   int // pages that were to be checked by axe-core
}

// browserTimeout bounds one step in the browser.
const browserTimeout = time.Minute

// openBrowser starts Chromium with an empty profile.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: chromium is not installed; scripts/setup.sh tests installs it")
	}
	dir, err := os.MkdirTemp("/var/tmp", "roost-browser-")
	if err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(dir),
		chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true)) // root has no sandbox in Chromium
	t.Cleanup(func() { os.RemoveAll(dir) })
	for range browserStarts {
		ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
		b := &browser{}
		ctx, cancel := chromedp.NewContext(ctx, chromedp.WithListener(b.listen))
		b.Context = ctx
		end := func() {
			chromedp.Cancel(ctx) // it waits for the process
			cancel()
			stop()
		}
		if err = chromedp.Do(ctx); err == nil { // it starts Chromium, which lives as long as this context
			t.Cleanup(end)
			return b
		}
		end()
		t.Logf("Chromium does not start: %v", err)
	}
	t.Fatal(err)
	return nil
}

// browserStarts is how often Chromium is started, which sometimes dies at its start.
const browserStarts = 3

// listen records what the console of a reader would show in red.
func (b *browser) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.report("exception: " + e.ExceptionDetails.Text + " " + e.ExceptionDetails.URL)
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			b.report(fmt.Sprintf("console: %s %s", e.Type, e.Args[0].Value))
		}
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Source == "security" {
			b.report(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	}
}

func (b *browser) report(problem string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.problems = append(b.problems, problem)
}

// takeProblems returns what was reported since the last call.
func (b *browser) takeProblems() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.problems
	b.problems = nil
	return all
}

// browse has the browser do something, and returns what that gives.
func browse[T any](t *testing.T, b *browser, a chromedp.Action[T]) T {
	t.Helper()
	ctx, cancel := context.WithTimeout(b, browserTimeout)
	defer cancel()
	got, err := chromedp.Run(ctx, a)
	if err != nil {
		t.Fatalf("%v; the browser said %q", err, b.takeProblems())
	}
	return got
}

// look is how a reader looks at a page.
type look struct {
	name          string
	width, height int64
	scheme        string // of colours
}

// looks are a narrow and a wide window, one dark and one light. Photographs are made of
// all four.
func looks() []look {
	all := []look{{"narrow-dark", 400, 860, "dark"}, {"wide-light", 1360, 900, "light"},
		{"narrow-light", 400, 860, "light"}, {"wide-dark", 1360, 900, "dark"}}
	if os.Getenv("ROOST_SCREENSHOTS") == "" {
		all = all[:2]
	}
	return all
}

// use has the browser show pages in a look.
func (l look) use(t *testing.T, b *browser) {
	t.Helper()
	browse(t, b, chromedp.EmulateViewport(l.width, l.height))
	browse(t, b, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.scheme}}})
		return err
	}))
}

// photograph writes a picture of the present page, if ROOST_SCREENSHOTS names a
// directory.
func (b *browser) photograph(t *testing.T, name string) {
	t.Helper()
	dir := os.Getenv("ROOST_SCREENSHOTS")
	if dir == "" {
		return
	}
	picture := browse(t, b, chromedp.FullScreenshot(100))
	if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkAccessibility reports what axe-core finds on the present page. Its script is put
// into build by scripts/axe.sh, or ROOST_AXE names it; without it nothing is checked.
// Only what it calls minor is accepted. It takes a second of a slow machine, so without
// ROOST_AXE pages are checked in one of two looks in turn.
func (b *browser) checkAccessibility(t *testing.T, name string) {
	t.Helper()
	file := cmp.Or(os.Getenv("ROOST_AXE"), "../../build/axe/axe.min.js")
	script, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("ROOST_AXE") == "" {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	n := b.looked
	if b.looked++; os.Getenv("ROOST_AXE") == "" && n%2 != n/2%2 {
		return
	}
	browse(t, b, chromedp.Evaluate[int](string(script)+"; 1"))
	// colours that still change count as wrong
	const run = `Promise.allSettled(document.getAnimations().map(a => a.finished)).then(() => axe.run())
		.then(r => r.violations.filter(v => v.impact != "minor")
		.map(v => v.impact + ": " + v.id + ": " + v.nodes.map(n => n.html.slice(0, 100)).join(", ")).join("\n"))`
	if found := browse(t, b, chromedp.Evaluate[string](run, chromedp.EvalAwaitPromise)); found != "" {
		t.Errorf("%s: axe-core finds %s", name, found)
	}
}
