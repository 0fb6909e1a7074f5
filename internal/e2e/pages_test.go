package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/roost-batch/roost/internal/cellhistory"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/simchild"
)

// webPool starts a pool with its pages.
func webPool(t *testing.T) *Pool {
	t.Helper()
	return startPool(t, PoolOptions{Nodes: 2, CPUs: 4, Web: true})
}

// webLink returns a link that logs its reader in.
func (p *Pool) webLink(t *testing.T) string {
	t.Helper()
	stdout, stderr, code := p.Command(t.Context(), "web", "login")
	if code != 0 {
		t.Fatalf("web login: %s%s", stdout, stderr)
	}
	return strings.TrimSpace(stdout)
}

// nodeNames are the names of the execute nodes.
func (p *Pool) nodeNames(t *testing.T) (names []string) {
	t.Helper()
	stdout, stderr, _ := p.Command(t.Context(), "nodes", "--json")
	var list struct{ Nodes []struct{ Name string } }
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list.Nodes) == 0 {
		t.Fatalf("%v, nodes: %s%s", err, stdout, stderr)
	}
	for _, n := range list.Nodes {
		names = append(names, n.Name)
	}
	return names
}

// TestPages opens every page as a reader does. It has a heading, the browser reports
// nothing, and nothing is wider than the window.
func TestPages(t *testing.T) {
	t.Parallel()
	b := openBrowser(t)
	p := webPool(t)
	file := filepath.Join(openDir(t), "sweep.hcl")
	job := `job "sweep" {
  script = "printf '\\033[31mtask\\033[0m %s <b>\\n' ${task.index}; [ ${task.index} != 3 ]"
  count  = 12
  memory = "64MiB"
}
job "too-large" {
  script = "true"
  memory = "900TiB"
}
job "saves" {
  script   = "if [ -e state ]; then sleep 1; exit 0; fi; sleep 2; echo x > state; exit 85"
  transfer = "always"
  checkpoint {
    method    = "self"
    exit_code = 85
    files     = ["state"]
  }
}
job "next" {
  command    = ["true"]
  depends_on = [job.too-large]
}
`
	if err := os.WriteFile(file, []byte(job), 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := p.Command(t.Context(), "submit", file)
	if code != 0 {
		t.Fatalf("submit: %s%s", stdout, stderr)
	}
	ids := strings.Fields(stdout)
	if stdout, stderr, code := p.Command(t.Context(), "wait", ids[0]); code != 1 {
		t.Fatalf("wait: %d %s%s", code, stdout, stderr)
	}
	checkWork(t, p, ids[2])
	victim, preemptor := preemptOne(t, p)
	service, schedule := p.submitService(t)
	set, inside := p.submitAllocs(t)
	flow := p.submitDiamond(t)
	link := p.webLink(t)
	address, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	browse(t, b, chromedp.Navigate(link))
	browse(t, b, chromedp.WaitVisible(".account"))
	for name, path := range map[string]string{
		"overview": "/", "jobs": "/jobs?all=1&history=1", "job": "/jobs/" + ids[0], "waiting": "/jobs/" + ids[1],
		"why": "/jobs/" + ids[1] + "/why", "tasks": "/jobs/" + ids[0] + "/tasks",
		"definition": "/jobs/" + ids[0] + "/definition",
		"log":        "/tasks/" + strings.Replace(ids[0], ".", "[2].", 1) + "/log/out", "submit": "/submit",
		"nodes": "/nodes", "node": "/nodes/" + p.nodeNames(t)[0], "node-ad": "/nodes/" + p.nodeNames(t)[0] + "/ads",
		"node-events": "/nodes/" + p.nodeNames(t)[0] + "/events", "map": "/map?by=class", "whatif": "/whatif?drain=n1",
		"shares": "/shares",
		"cell":   "/cell", "quotas": "/quotas", "usage": "/usage?all=1", "account": "/account",
		"search": "/search?q=sweep", "manual": "/manual", "manual-search": "/manual?q=walltime",
		"manual-page": "/manual/roost-job.5",
		"statement":   "/statement?all=1",
		"waste":       "/waste?all=1", "reclaimed": "/reclaimed?days=3",
		"job-usage":   "/jobs/" + ids[0] + "/usage",
		"checkpoints": "/tasks/" + ids[2] + "/checkpoints", "saved": "/tasks/" + ids[2],
		"evictions": "/tasks/" + victim + "/evictions", "displaced": "/tasks/" + victim,
		"preemptor":   "/tasks/" + preemptor,
		"calibration": "/calibration", "sample": "/submit?sample=sweep",
		"names": "/names", "service": "/jobs/" + service, "schedule": "/jobs/" + schedule,
		"allocs": "/allocs?all=1", "alloc-set": "/jobs/" + set, "inside": "/jobs/" + inside,
		"service-task": "/tasks/" + strings.Replace(service, ".", "[1].", 1),
		"clone":        "/jobs/" + ids[0] + "/clone", "dependencies": "/jobs/" + ids[1] + "/dependencies",
		"log-search": "/tasks/" + strings.Replace(ids[0], ".", "[2].", 1) + "/search/out?q=task",
		"packages":   "/packages", "pilots": "/pilots?all=1", "peers": "/peers", "secrets": "/secrets",
		"cron": "/cron?all=1", "queues": "/queues", "reservations": "/reservations", "admins": "/admins",
		"past": "/past", "flow": "/jobs/" + flow + "/flow", "flow-job": "/jobs/" + flow, "package": "/packages/tool",
	} {
		t.Run(name, func(t *testing.T) {
			for _, l := range looks() {
				l.use(t, b)
				browse(t, b, chromedp.Navigate("http://"+address.Host+path))
				heading := browse(t, b, chromedp.Text("h1"))
				overflow := browse(t, b, chromedp.Evaluate[bool]("document.documentElement.scrollWidth > innerWidth"))
				b.photograph(t, name+"-"+l.name)
				b.checkAccessibility(t, l.name)
				if heading == "" || overflow {
					t.Errorf("%s: heading %q, wider than the window: %t", l.name, heading, overflow)
				}
				if problems := b.takeProblems(); len(problems) > 0 {
					t.Errorf("%s: the browser reports %q", l.name, problems)
				}
			}
		})
	}
	t.Run("acts", func(t *testing.T) { checkActs(t, b, p, "http://"+address.Host) })
	t.Run("problem", func(t *testing.T) { checkProblem(t, b, "http://"+address.Host) })
	t.Run("preemption-links", func(t *testing.T) {
		checkPreemptionLinks(t, b, "http://"+address.Host, victim, preemptor)
	})
	t.Run("whatif-answer", func(t *testing.T) { checkWhatIf(t, b, p, "http://"+address.Host) })
	t.Run("past", func(t *testing.T) { checkPast(t, b, p, "http://"+address.Host, ids[1]) })
	t.Run("zone", func(t *testing.T) { checkZone(t, b, "http://"+address.Host, ids[0]) })
	t.Run("notify", func(t *testing.T) { checkNotification(t, b, p, "http://"+address.Host) })
	t.Run("clone-submitted", func(t *testing.T) { checkClone(t, b, p, "http://"+address.Host, ids[0]) })
	t.Run("map-keys", func(t *testing.T) { checkMapKeys(t, b, p, "http://"+address.Host) })
	t.Run("live", func(t *testing.T) { checkLiveTable(t, b, p, "http://"+address.Host) })
}

// checkWork waits for a job that is started again with its own checkpoint. What is useful
// and what is lost has to make up the time of its attempts.
func checkWork(t *testing.T, p *Pool, id string) {
	if stdout, stderr, code := p.Command(t.Context(), "wait", id); code != 0 {
		t.Fatalf("wait: %d %s%s", code, stdout, stderr)
	}
	text, stderr, _ := p.Command(t.Context(), "show", "--json", id)
	var shown struct {
		Checkpoints document.CheckpointTimeline
		Events      []document.Event
	}
	if err := json.Unmarshal([]byte(text), &shown); err != nil {
		t.Fatalf("show: %v, %s", err, stderr)
	}
	wall, c := 0.0, &shown.Checkpoints
	for i := range shown.Events {
		if x := shown.Events[i].Exit; x != nil {
			wall += x.Wall
		}
	}
	if math.Abs(c.Useful+c.Lost-wall) > 1 || wall < 3 || c.Useful < 2.9 || c.Restores != 1 || len(c.Images) != 1 ||
		len(c.Attempts) != 2 || c.Images[0].Restores != 1 || c.Attempts[1].From != 1 {
		t.Errorf("the attempts ran for %v s, and the timeline is %+v", wall, c)
	}
}

// checkWhatIf asks what a drain would do, by the form. The child of the web daemon has to
// say of one checkpoint what the command says.
func checkWhatIf(t *testing.T, b *browser, p *Pool, base string) {
	node := p.nodeNames(t)[0]
	finish := p.sleepersOf(t, "whatif", "")
	defer finish()
	for _, l := range looks() {
		l.use(t, b)
		browse(t, b, chromedp.Navigate(base+"/whatif?drain="+url.QueryEscape(node)))
		browse(t, b, chromedp.Click("main button.primary"))
		browse(t, b, chromedp.WaitVisible("main .notice"))
		if text := browse(t, b, chromedp.Text("main")); !strings.Contains(text, node+": ") ||
			!strings.Contains(text, "digest") {
			t.Errorf("the answer is %q", text)
		}
		b.photograph(t, "whatif-answer-"+l.name)
		b.checkAccessibility(t, l.name)
	}
	if problems := b.takeProblems(); len(problems) > 0 {
		t.Errorf("the browser reports %q", problems)
	}
	file := filepath.Join(openDir(t), "cell")
	if _, stderr, code := p.Command(t.Context(), "cell", "checkpoint", file); code != 0 {
		t.Fatalf("cell checkpoint: %s", stderr)
	}
	want, stderr, code := p.Command(t.Context(), "sim", "whatif", "--json", "--drain", node, file)
	text, err := os.ReadFile(file)
	if code != 0 || err != nil {
		t.Fatalf("sim whatif: %v, %s", err, stderr)
	}
	simulator := simchild.Simulator{Program: filepath.Join(filepath.Dir(program(t)), "roost-sim")}
	got, err := simulator.WhatIf(t.Context(), text, []string{"--drain=" + node})
	if err != nil || string(got) != want || !strings.Contains(want, "digest") {
		t.Errorf("%v, the child says\n%s\nand the command\n%s", err, got, want)
	}
}

// checkPast looks at the cell as it was at two checkpoints. The document of one has to be
// what the command says of the same file.
func checkPast(t *testing.T, b *browser, p *Pool, base, waiting string) {
	dir := filepath.Join(p.Dir, "checkpoints")
	browse(t, b, chromedp.Navigate(base+"/past"))
	if text := browse(t, b, chromedp.Text("main")); !strings.Contains(text, "There is no checkpoint yet") {
		t.Errorf("before there is one the page says %q", text)
	}
	var all []time.Time
	if !pollUntil(t.Context(), awaitTimeout, func() bool { // those of one second have one name
		if _, stderr, code := p.Command(t.Context(), "cell", "checkpoint", "--into", dir, "--keep", "1d"); code != 0 {
			t.Fatalf("cell checkpoint: %s", stderr)
		}
		all, _ = cellhistory.List(dir)
		return len(all) >= 2
	}) {
		t.Fatalf("there are %d checkpoints", len(all))
	}
	for _, l := range looks() {
		l.use(t, b)
		browse(t, b, chromedp.Navigate(base+"/past"))
		b.photograph(t, "past-list-"+l.name)
		b.checkAccessibility(t, l.name)
		browse(t, b, chromedp.Click("main form button"))
		browse(t, b, chromedp.WaitVisible("main .notice.warn"))
		text := browse(t, b, chromedp.Text("main"))
		if !strings.Contains(text, "This is the past") || !strings.Contains(text, waiting) ||
			!strings.Contains(text, "too small") {
			t.Errorf("the page says %q", text)
		}
		b.photograph(t, "past-"+l.name)
		b.checkAccessibility(t, l.name)
	}
	earlier := "/past/" + cellhistory.Name(all[len(all)-2])
	link := browse(t, b, chromedp.Evaluate[string]("document.querySelector('main form a.button').getAttribute('href')"))
	if link != earlier {
		t.Errorf("the link leads to %s, want %s", link, earlier)
	}
	browse(t, b, chromedp.Navigate(base+link))
	if text := browse(t, b, chromedp.Text("main")); !strings.Contains(text, "This is the past") {
		t.Errorf("the page before says %q", text)
	}
	if problems := b.takeProblems(); len(problems) > 0 {
		t.Errorf("the browser reports %q", problems)
	}
	name := cellhistory.Name(all[0])
	want, stderr, code := p.Command(t.Context(), "sim", "show", "--json", filepath.Join(dir, name+".cell"))
	got := browse(t, b, chromedp.Evaluate[string](`fetch("/v1/past/`+name+`").then((r) => r.text())`,
		chromedp.EvalAwaitPromise))
	if code != 0 || got != want || !strings.Contains(want, waiting) {
		t.Errorf("%s: the web daemon says\n%s\nand the command\n%s", stderr, got, want)
	}
}

// checkZone uses the switch between UTC and local time. It leads back to the page, whose
// times are then in UTC, and once more to local ones.
func checkZone(t *testing.T, b *browser, base, job string) {
	address := base + "/jobs/" + job + "?x=1"
	browse(t, b, chromedp.Navigate(address))
	for _, c := range [][2]string{{"utc", "Times are in UTC."}, {"local", "Times are in your zone"}} {
		browse(t, b, chromedp.Click("footer form button"))
		browse(t, b, chromedp.WaitVisible(fmt.Sprintf("html[data-zone=%q]", c[0])))
		if here := browse(t, b, chromedp.Evaluate[string]("location.href")); here != address {
			t.Errorf("the switch leads to %s, want %s", here, address)
		}
		if text := browse(t, b, chromedp.Text("footer span")); !strings.HasPrefix(text, c[1]) {
			t.Errorf("below the page is %q, want %q", text, c[1])
		}
	}
	if problems := b.takeProblems(); len(problems) > 0 {
		t.Errorf("the browser reports %q", problems)
	}
}

// checkMapKeys holds that the map is painted soon, and that keys lead to a node.
func checkMapKeys(t *testing.T, b *browser, p *Pool, base string) {
	browse(t, b, chromedp.Navigate(base+"/map"))
	browse(t, b, chromedp.WaitVisible("[data-map][data-ready] canvas"))
	painted := browse(t, b, chromedp.Evaluate[float64]("performance.getEntriesByName('map-painted')[0].startTime"))
	t.Logf("the map is painted after %.0f ms", painted)
	if painted > 5000 { // the aim is 500 ms on a machine that does nothing else
		t.Errorf("the map is painted after %.0f ms", painted)
	}
	browse(t, b, chromedp.Focus("canvas"))
	browse(t, b, chromedp.KeyEvent(kb.Home))
	browse(t, b, chromedp.KeyEvent(kb.ArrowRight))
	names := p.nodeNames(t)
	if text := browse(t, b, chromedp.Text("#map-node")); !strings.HasPrefix(text, names[1]+": ") {
		t.Errorf("the second node is %s, and the map says %q", names[1], text)
	}
	browse(t, b, chromedp.KeyEvent(kb.Enter))
	browse(t, b, chromedp.WaitVisible("h2"))
	if heading := browse(t, b, chromedp.Text("h1")); heading != names[1] {
		t.Errorf("Enter leads to %q, want %q", heading, names[1])
	}
	if problems := b.takeProblems(); len(problems) > 0 {
		t.Errorf("the browser reports %q", problems)
	}
}

// notificationScript has the page show its notifications to the test. The permission is
// asked for, and is given.
const notificationScript = `window.Notification = class {
	static get permission() { return localStorage.getItem("test-permission") || "default"; }
	static async requestPermission() { localStorage.setItem("test-permission", "granted"); return "granted"; }
	constructor(title, options) { localStorage.setItem("test-shown", title + ": " + options.body); }
	addEventListener() {}
}`

// checkNotification asks on the page of a job to be notified of its end. Nobody is asked
// for a permission before that.
func checkNotification(t *testing.T, b *browser, p *Pool, base string) {
	browse(t, b, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, page.AddScriptToEvaluateOnNewDocument,
			page.AddScriptToEvaluateOnNewDocumentParams{Source: notificationScript})
		return err
	}))
	finish := p.sleepersOf(t, "bell", "")
	id := p.onlyJob(t, "@bell")
	browse(t, b, chromedp.Navigate(base+"/jobs/"+id))
	browse(t, b, chromedp.WaitVisible("[data-notify]"))
	if asked := browse(t, b, chromedp.Evaluate[string](`Notification.permission`)); asked != "default" {
		t.Errorf("before the button is used the permission is %q", asked)
	}
	browse(t, b, chromedp.Click("[data-notify]"))
	browse(t, b, chromedp.WaitVisible(`[data-notify][aria-pressed="true"]`))
	browse(t, b, chromedp.Navigate(base+"/nodes")) // on any page
	finish()
	shown := browse(t, b, chromedp.Evaluate[string](`new Promise(done => setInterval(() => {
		const text = localStorage.getItem("test-shown");
		if (text) done(text);
	}, 100))`, chromedp.EvalAwaitPromise))
	left := browse(t, b, chromedp.Evaluate[string](`localStorage.getItem("notify")`))
	if shown != "bell has ended: completed" || strings.Contains(left, id) {
		t.Errorf("the notification is %q, and still to come are %s", shown, left)
	}
	browse(t, b, chromedp.Navigate(base+"/jobs/"+id))
	hidden := browse(t, b, chromedp.Evaluate[bool](`document.querySelector("[data-notify]").hidden`))
	if problems := b.takeProblems(); len(problems) > 0 || !hidden {
		t.Errorf("the browser reports %q; of a job that has ended the button is hidden: %t", problems, hidden)
	}
}

// onlyJob returns the id of the only job of a selector.
func (p *Pool) onlyJob(t *testing.T, selector string) string {
	t.Helper()
	stdout, stderr, _ := p.Command(t.Context(), "jobs", "--json", selector)
	var list struct{ Jobs []struct{ ID string } }
	if err := json.Unmarshal([]byte(stdout), &list); err != nil || len(list.Jobs) != 1 {
		t.Fatalf("%v, jobs: %s%s", err, stdout, stderr)
	}
	return list.Jobs[0].ID
}

// checkClone submits the text of a job again, as the form has it. The ad of the new job
// has to be that of the old one, apart from what a schedd sets.
func checkClone(t *testing.T, b *browser, p *Pool, base, id string) {
	ad := func(id string) map[string]any {
		var shown struct{ Ad map[string]any }
		text := browse(t, b, chromedp.Evaluate[string](`fetch("/v1/jobs/`+id+`/definition").then((r) => r.text())`,
			chromedp.EvalAwaitPromise))
		if err := json.Unmarshal([]byte(text), &shown); err != nil || len(shown.Ad) < 10 {
			t.Fatalf("definition of %s: %v, %s", id, err, text)
		}
		for _, name := range []string{"JobId", "QDate", "SubmitKey", "SubmitVersion"} {
			delete(shown.Ad, name)
		}
		return shown.Ad
	}
	browse(t, b, chromedp.Navigate(base+"/jobs/"+id))
	browse(t, b, chromedp.Click(`a[href$="/clone"]`))
	browse(t, b, chromedp.WaitVisible("#text"))
	if notes := browse(t, b, chromedp.Evaluate[int](`document.querySelectorAll("main .notice li").length`)); notes != 0 {
		t.Errorf("the form notes %s", browse(t, b, chromedp.Text("main .notice")))
	}
	browse(t, b, chromedp.Click("main form button.primary"))
	browse(t, b, chromedp.WaitVisible("[data-live-job]"))
	again := browse(t, b, chromedp.Evaluate[string](`document.querySelector("[data-live-job]").dataset.liveJob`))
	was, is := ad(id), ad(again)
	if again == id || !reflect.DeepEqual(was, is) {
		t.Errorf("job %s has\n%v\nand %s\n%v", id, was, again, is)
	}
	if problems := b.takeProblems(); len(problems) > 0 {
		t.Errorf("the browser reports %q", problems)
	}
}

// checkLiveTable holds that a row of the list shows the end of its job by itself.
func checkLiveTable(t *testing.T, b *browser, p *Pool, base string) {
	finish := p.sleepersOf(t, "sleeper", "")
	row := fmt.Sprintf("tr[data-job=%q] ", p.onlyJob(t, "@sleeper"))
	browse(t, b, chromedp.Navigate(base+"/jobs"))
	browse(t, b, chromedp.WaitVisible(row+".state.running"))
	browse(t, b, chromedp.Evaluate[int]("window.sameDocument = 1"))
	finish()
	browse(t, b, chromedp.WaitVisible(row+".state.completed"))
	if browse(t, b, chromedp.Evaluate[int]("window.sameDocument || 0")) != 1 {
		t.Error("the page was loaded again")
	}
	if problems := b.takeProblems(); len(problems) > 0 {
		t.Errorf("the browser reports %q", problems)
	}
}
