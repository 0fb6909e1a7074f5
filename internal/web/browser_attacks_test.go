package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/web/view"
	"github.com/roost-batch/roost/internal/wire"
)

// reader is Chromium with the pages of a web daemon. It records dialogs and what its
// console shows in red.
type reader struct {
	*testing.T
	context.Context
	web     *testWeb
	base    string
	mu      sync.Mutex
	reports []string
}

// readTimeout bounds one step in the browser.
const readTimeout = time.Minute

// newReader starts Chromium, and serves the pages to it. Its user has no limits.
func newReader(t *testing.T, w *testWeb) *reader {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("SKIPPED: chromium is not installed; scripts/setup.sh tests installs it")
	}
	dir, err := os.MkdirTemp("/var/tmp", "roost-reader-")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	served := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, q *http.Request) {
		mu.Lock()
		w.forgetLimits()
		table := w.server.table
		mu.Unlock()
		table.ServeHTTP(answer, q)
	}))
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(dir),
		chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true))
	t.Cleanup(func() {
		os.RemoveAll(dir)
		served.CloseClientConnections() // streams go on
		served.Close()
	})
	for range browserStarts {
		ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
		r := &reader{T: t, web: w, base: served.URL}
		ctx, cancel := chromedp.NewContext(ctx, chromedp.WithListener(r.listen))
		r.Context = ctx
		end := func() {
			chromedp.Cancel(ctx)
			cancel()
			stop()
		}
		if err = chromedp.Do(ctx); err == nil {
			t.Cleanup(end)
			return r
		}
		end()
		t.Logf("Chromium does not start: %v", err)
	}
	t.Fatal(err)
	return nil
}

// browserStarts is how often Chromium is started, which sometimes dies at its start.
const browserStarts = 3

func (r *reader) listen(event any) {
	var text string
	switch e := event.(type) {
	case *page.EventJavascriptDialogOpening:
		text = "dialog: " + e.Message
	case *runtime.EventExceptionThrown:
		text = "exception: " + e.ExceptionDetails.Text
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == "error" || e.Entry.Source == "security" {
			text = fmt.Sprintf("%s: %s", e.Entry.Source, e.Entry.Text)
		}
	}
	if text != "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reports = append(r.reports, text)
	}
}

// takeReports returns what was recorded since the last call.
func (r *reader) takeReports() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	reports := r.reports
	r.reports = nil
	return reports
}

func readPage[T any](r *reader, a chromedp.Action[T]) T {
	r.Helper()
	ctx, cancel := context.WithTimeout(r.Context, readTimeout)
	defer cancel()
	got, err := chromedp.Run(ctx, a)
	if err != nil {
		r.Fatalf("%v; the browser said %q", err, r.takeReports())
	}
	return got
}

// seenPage is what a page of the browser has.
type seenPage struct {
	Texts   []string // of nodes and attributes that have the number of a payload
	Foreign []string // elements and attributes that no page of the daemon has
	Links   []string // where elements lead, each with its name and its rel
}

// lookScript returns a seenPage.
const lookScript = `(() => {
	const seen = { Texts: [], Foreign: [], Links: [] };
	const walk = document.createTreeWalker(document, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_COMMENT);
	while (walk.nextNode()) if (walk.currentNode.data.includes("⟦")) seen.Texts.push(walk.currentNode.data);
	for (const e of document.querySelectorAll("*")) {
		if (e.matches("iframe, object, embed, base, portal, frame, meta[http-equiv]") ||
			e.matches("script") && !(e.src.startsWith(location.origin + "/static/")) ||
			e.matches("style, link[rel=stylesheet]") && !(e.href || "").startsWith(location.origin + "/static/"))
			seen.Foreign.push(e.outerHTML.slice(0, 300));
		for (const a of e.attributes) {
			if (a.name.startsWith("on") || a.name == "srcdoc") seen.Foreign.push(e.outerHTML.slice(0, 300));
			if (["href", "src", "action", "formaction", "xlink:href", "data", "poster", "cite"].includes(a.name))
				seen.Links.push([e.localName, new URL(a.value, location.href).href, e.rel || ""].join("\n"));
			else if (a.value.includes("⟦")) seen.Texts.push(a.value);
		}
	}
	return seen;
})()`

// shownPayload finds a payload by the number behind it.
var shownPayload = regexp.MustCompile(`(?s)^(.*?)⟦(\d+)⟧`)

// blankRuns are what an attribute and a text node may show differently.
var blankRuns = regexp.MustCompile(`[\s\x{2028}\x{2029}]+`)

// plainForms are the texts by which a page may show one. HTML has no NUL, and control
// characters of outputs are shown as pictures.
func plainForms(text string) []string {
	var forms []string
	for _, form := range []string{text, view.SafeText(text), document.PrintableText(text)} {
		form = strings.ReplaceAll(form, "\x00", "\ufffd")
		forms = append(forms, form, blankRuns.ReplaceAllString(form, " "), strings.ToLower(form))
		if quoted, err := json.Marshal(text); err == nil { // a page that shows JSON
			forms = append(forms, string(quoted[1:len(quoted)-1]))
		}
		quoted := classad.StringValue(text).String() // a page that shows an ad
		forms = append(forms, quoted[1:len(quoted)-1])
		if form != "" { // a text that begins a sentence
			forms = append(forms, strings.ToUpper(form[:1])+form[1:])
		}
	}
	return forms
}

// checkTexts holds that each payload is shown as it was sent. It returns how many there
// were.
func (r *reader) checkTexts(path string, texts, payloads []string) (shown int) {
	r.Helper()
	for _, text := range texts {
		for rest := text; ; {
			m := shownPayload.FindStringSubmatch(rest)
			if m == nil {
				break
			}
			rest = rest[len(m[0]):]
			i, err := strconv.Atoi(m[2])
			if err != nil || i >= len(payloads) {
				r.Fatalf("%s: strange number in %q", path, text)
			}
			flat := blankRuns.ReplaceAllString(strings.ReplaceAll(m[1], "\r", "\n"), " ")
			if !slices.ContainsFunc(plainForms(payloads[i]), func(form string) bool {
				return strings.HasSuffix(m[1], form) || strings.HasSuffix(flat, form)
			}) {
				r.Errorf("%s shows %q for payload %q", path, m[1], payloads[i])
			}
			shown++
		}
	}
	return shown
}

// checkLinks holds that no text of a job is where a link leads. Links have no scheme but
// http and https, and lead to another site only without the opener.
func (r *reader) checkLinks(path string, links []string) {
	r.Helper()
	own, err := url.Parse(r.base)
	if err != nil {
		r.Fatal(err)
	}
	for _, link := range links {
		part := strings.Split(link, "\n")
		to, err := url.Parse(part[1])
		switch {
		case part[0] == "link" && strings.HasPrefix(part[1], "data:image/"): // the icon
		case err != nil || to.Scheme != "http" && to.Scheme != "https":
			r.Errorf("%s: a link of %s leads to %q", path, part[0], part[1])
		case to.Host != own.Host && (part[0] != "a" || !strings.Contains(part[2], "noopener")):
			r.Errorf("%s: %s leads to another site, %q, with rel %q", path, part[0], part[1], part[2])
		}
	}
}

// markTexts has the fake schedd send the mark wherever it sends a text.
func (f *fakeSchedd) markTexts() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.flow = []*wire.FlowNode{{Name: hostileMark, State: "failed", Reason: hostileMark, Kind: hostileMark,
		Children: []string{hostileMark}}, {Name: "b", State: hostileMark, Job: hostileMark}}
	f.text, f.hostile = hostileMark, &hostileText{payloads: payloads()}
	f.ads = []string{`[Name = "n1"; State = "Unclaimed"; TotalCpus = 4; Cpus = 4; Rack = "` + hostileMark +
		`"; Note = "` + hostileMark + `"; OwnerBusyReason = "` + hostileMark + `"; PilotOwner = "ann"; PilotHost = "` +
		hostileMark + `"; PilotProvider = "` + hostileMark + `"; PilotKey = "` + hostileMark + `"]`,
		`[Name = "` + hostileMark + `"; State = "` + hostileMark + `"; TotalCpus = 4; Class = "` + hostileMark + `"]`}
	f.cell = map[string]string{}
	for kind, object := range map[string]string{"quota": `{"principal":"M"}`, "group": `{"name":"M"}`,
		"queue": `{"name":"M"}`, "limit": `{"name":"M"}`, "drain": `{"node":"n1","reason":"M"}`,
		"reservation": `{"name":"M","users":["M"],"reason":"M"}`, "admin": `{"name":"M"}`,
		"comment": `{"node":"n1","text":"M","comment":"M"}`} {
		one := `[{"name":"M","object":` + object + `,"set_by":"M"}]`
		f.cell[kind] = strings.ReplaceAll(one, "M", hostileMark)
	}
	f.cell["shares"] = strings.ReplaceAll(`{"submitters":[{"name":"M","group":"M","user":"M"},
{"name":"M","group":"peer:M","user":"M","core_hours_elsewhere":1}]}`, "M", hostileMark)
	f.cell["secret"] = strings.ReplaceAll(`[{"name":"M","owner":"M","hosts":["M"],"version":1,"versions":[{"by":"M"}]}]`,
		"M", hostileMark)
	f.cell["settings"] = strings.ReplaceAll(`[{"name":"M","value":"M"}]`, "M", hostileMark)
}

// hostileRoundsVariable is the environment variable with how often each page is opened.
// Each round has other payloads in other places; within a round each payload is on many
// pages. Without it there is one round, another one each day.
const hostileRoundsVariable = "ROOST_HOSTILE_ROUNDS"

func hostileRounds(t *testing.T) (first, end int) {
	if n, err := strconv.Atoi(os.Getenv(hostileRoundsVariable)); err == nil {
		return 0, n
	}
	first = time.Now().YearDay() % len(payloads())
	t.Logf("round %d: %s=%d has it, too", first, hostileRoundsVariable, first+1)
	return first, first + 1
}

// TestW1Browser opens all pages in Chromium while each string of each document that the
// schedd sends is a payload. No script runs, no policy is violated, the pages show the
// texts as they were sent, and links lead to pages alone (W3).
func TestW1Browser(t *testing.T) {
	t.Parallel()
	w := newTestWeb(t)
	r := newReader(t, w)
	readPage(r, chromedp.Navigate(r.base+"/login#"+w.loginToken("ann")))
	readPage(r, chromedp.WaitVisible(".account"))
	w.schedd.markTexts()
	w.hostilePast()
	shown := map[string]int{}
	r.takeReports()
	for round, end := hostileRounds(t); round < end; round++ {
		w.schedd.mu.Lock()
		w.schedd.hostile.next = round
		w.schedd.mu.Unlock()
		for _, of := range w.server.table.Routes() {
			if of.Page == "" || of.Method != http.MethodGet || strings.HasPrefix(of.Page, "/login") {
				continue
			}
			path := strings.Replace(examplePath(of.Page), "{page}", "roost.1", 1) + "?q=n1&all=1"
			readPage(r, chromedp.Navigate(r.base+path))
			seen := readPage(r, chromedp.Evaluate[seenPage](lookScript))
			shown[of.Page] += r.checkTexts(path, seen.Texts, payloads())
			r.checkLinks(path, seen.Links)
			if len(seen.Foreign) > 0 {
				t.Errorf("%s has foreign elements: %q", path, seen.Foreign)
			}
			if reports := r.takeReports(); len(reports) > 0 {
				t.Errorf("%s: the browser reports %q", path, reports)
			}
		}
	}
	r.checkShown(shown)
}

// checkShown holds that the pages with texts of jobs have shown payloads.
func (r *reader) checkShown(shown map[string]int) {
	r.Helper()
	for _, page := range []string{"/{$}", "/jobs", "/jobs/{id}", "/jobs/{id}/why", "/jobs/{id}/tasks", "/tasks/{id}",
		"/tasks/{id}/log/{stream}", "/tasks/{id}/checkpoints", "/jobs/{id}/definition", "/jobs/{id}/dependencies",
		"/jobs/{id}/flow", "/nodes", "/nodes/{node}", "/secrets", "/cron", "/pilots", "/peers", "/packages",
		"/packages/{name}", "/search", "/account", "/shares", "/names", "/allocs", "/map", "/quotas", "/queues",
		"/drains", "/reservations", "/admins", "/statement", "/usage", "/past/{checkpoint}"} {
		if shown[page] == 0 {
			r.Errorf("%s has shown no payload", page)
		}
	}
	r.Logf("payloads on each page: %v", shown)
}

// frameScript waits until a frame has its page, or an error in its place.
const frameScript = `new Promise(done => setInterval(() => document.title == "framed" && done(1), 50))`

// TestW6Clickjacking has a page of another site frame every page. Chromium refuses each,
// and shows a page that permits it.
func TestW6Clickjacking(t *testing.T) {
	t.Parallel()
	w := newTestWeb(t)
	r := newReader(t, w)
	readPage(r, chromedp.Navigate(r.base+"/login#"+w.loginToken("ann")))
	readPage(r, chromedp.WaitVisible(".account"))
	site := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, q *http.Request) {
		answer.Header().Set("Content-Type", "text/html")
		if framed := q.URL.Query().Get("frame"); framed != "" {
			fmt.Fprintf(answer, `<iframe src="%s" onload="document.title = 'framed'"></iframe>`, framed)
			return
		}
		fmt.Fprint(answer, `<p>this page may be framed</p>`)
	}))
	t.Cleanup(site.Close)
	refused := func(framed string) bool {
		r.takeReports()
		readPage(r, chromedp.Navigate(site.URL+"/?frame="+url.QueryEscape(framed)))
		readPage(r, chromedp.Evaluate[int](frameScript, chromedp.EvalAwaitPromise))
		return slices.ContainsFunc(r.takeReports(), func(text string) bool {
			return strings.Contains(text, "frame-ancestors")
		})
	}
	if refused(site.URL + "/open") {
		t.Error("a page that may be framed is refused: the test sees nothing")
	}
	tried := 0
	for _, of := range w.server.table.Routes() {
		if of.Page == "" || of.Method != http.MethodGet || of.Rights == route.Anonymous && of.Page != "/login" {
			continue
		}
		tried++
		if !refused(r.base + examplePath(of.Page)) {
			t.Errorf("%s can be framed", of.Page)
		}
	}
	if tried < 20 {
		t.Errorf("%d pages were tried", tried)
	}
}
