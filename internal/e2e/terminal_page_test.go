package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// terminalText is what the terminal on the present page shows.
const terminalText = `[...document.querySelectorAll(".xterm-rows > div")].map(r => r.textContent).join("\n")`

// pasteText is a function that pastes a text into the terminal.
const pasteText = `(text => {
	const data = new DataTransfer();
	data.setData("text/plain", text);
	return document.querySelector(".xterm-helper-textarea").dispatchEvent(
		new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })) || true;
})`

// TestTerminalPage types commands into a shell in a running task and reads their answers.
// The shell has the task's environment, and ends when its login is revoked.
func TestTerminalPage(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	p := webPool(t)
	link := p.webLink(t)
	base, _, _ := strings.Cut(link, "/login")
	browse(t, b, chromedp.Navigate(link))
	browse(t, b, chromedp.WaitVisible(".account"))
	finish := p.sleepersOf(t, "entered", "")
	defer finish()
	id := p.runningJob(t, "@entered")
	browse(t, b, chromedp.Navigate(base+"/jobs/"+id))
	browse(t, b, chromedp.Click(`a[href$="/terminal"]`))
	browse(t, b, chromedp.WaitVisible(".xterm-screen"))
	awaitPage(t, b, `document.querySelector("[data-terminal-status]")?.textContent == "Connected."`)
	for _, l := range looks() {
		l.use(t, b)
		b.photograph(t, "terminal-"+l.name)
		b.checkAccessibility(t, l.name)
		if browse(t, b, chromedp.Evaluate[bool]("document.documentElement.scrollWidth > innerWidth")) {
			t.Errorf("%s: the page is wider than the window", l.name)
		}
	}
	b.typeKeys(t, "echo $ROOST_TASK_ID | tr a-z A-Z; printf '\\033[32m%s\\033[0m\\n' $((6*7))\r")
	awaitPage(t, b, `/^42\s*$/m.test(`+terminalText+`)`)
	task := strings.ToUpper(strings.Replace(id, ".", "[0].", 1))
	if got := browse(t, b, chromedp.Evaluate[string](terminalText)); !strings.Contains(got, task) {
		t.Errorf("the variables of the task: %s", got)
	}
	browse(t, b, chromedp.Evaluate[bool](pasteText+`("printf '<%s>\\n' grüße")`))
	b.typeKeys(t, "\r")
	awaitPage(t, b, `/^<grüße>\s*$/m.test(`+terminalText+`)`)
	b.photograph(t, "terminal-used")
	b.typeKeys(t, "stty size\r")
	awaitPage(t, b, `/^\d+ \d+\s*$/m.test(`+terminalText+`)`)
	b.typeKeys(t, "seq 200000 | tail -c 1000000; echo whole\r")
	awaitPage(t, b, `/^200000\s*\nwhole\s*$/m.test(`+terminalText+`)`)
	b.typeKeys(t, "exit 3\r")
	awaitPage(t, b, `document.querySelector("[data-terminal-status]").textContent.includes("exit code 3")`)
	browse(t, b, chromedp.Click("[data-terminal-again]"))
	awaitPage(t, b, `document.querySelector("[data-terminal-status]").textContent == "Connected."`)
	if problems := b.takeProblems(); len(problems) > 0 {
		t.Errorf("the browser reports %q", problems)
	}
	b.revokeLogins(t, p)
	began := time.Now()
	awaitPage(t, b, `document.querySelector("[data-terminal-status]").textContent.includes("log in again")`)
	if past := time.Since(began); past > 20*time.Second {
		t.Errorf("the terminal ended %v after the revocation", past)
	}
	b.takeProblems() // what other parts of the page make of it
}

// typeKeys types as a keyboard does: a key that a script has handled makes no character.
func (b *browser) typeKeys(t *testing.T, text string) {
	t.Helper()
	browse(t, b, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, r := range text {
			events := kb.Encode(r)
			down, up := events[0], events[len(events)-1]
			down.Text = string(r)
			for _, e := range []*input.DispatchKeyEventParams{down, up} {
				if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, *e); err != nil {
					return err
				}
			}
		}
		return nil
	}))
}

// runningJob waits until a job runs, and returns its id.
func (p *Pool) runningJob(t *testing.T, selector string) (id string) {
	t.Helper()
	var list struct{ Jobs []struct{ ID, State string } }
	if !pollUntil(t.Context(), awaitTimeout, func() bool {
		stdout, _, _ := p.Command(t.Context(), "jobs", "--json", selector)
		return json.Unmarshal([]byte(stdout), &list) == nil && len(list.Jobs) == 1 && list.Jobs[0].State == "running"
	}) {
		t.Fatalf("%s: %+v", selector, list)
	}
	return list.Jobs[0].ID
}

// awaitPage waits until an expression holds on the present page.
func awaitPage(t *testing.T, b *browser, expression string) {
	t.Helper()
	if !pollUntil(t.Context(), browserTimeout, func() bool {
		return browse(t, b, chromedp.Evaluate[bool](expression))
	}) {
		t.Fatalf("not on the page: %s; it has %q", expression, browse(t, b, chromedp.Text("main")))
	}
}

// revokeLogins revokes all logins of the user.
func (b *browser) revokeLogins(t *testing.T, p *Pool) {
	t.Helper()
	stdout, stderr, _ := p.Command(t.Context(), "logins", "--json")
	var list struct{ Logins []struct{ ID string } }
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list.Logins) == 0 {
		t.Fatalf("%v, logins: %s%s", err, stdout, stderr)
	}
	for _, l := range list.Logins {
		if _, stderr, code := p.Command(t.Context(), "logins", "rm", l.ID); code != 0 {
			t.Fatalf("logins rm: %s", stderr)
		}
	}
}
