package web

import (
	"encoding/json"
	"html"
	"net/http"
	"strings"
	"testing"

	"github.com/roost-batch/roost/internal/web/view"
	"github.com/roost-batch/roost/internal/wire"
)

// clonedAd is the ad of a job with three tasks, as a schedd has it.
const clonedAd = `[MyType = "Job"; JobName = "sweep"; JobId = "1.n1"; Owner = "ann"; QDate = 1; TaskCount = 3;
	Array = true; Iwd = "/home/ann"; Cmd = "./simulate"; Arguments = { "--lr=$(lr)","$(TaskIndex)","$$HOME" };
	Environment = { "MODE=fast","DB_PASSWORD=t0ps3cret" }; Transfer = "always";
	TransferInput = { "/home/ann/simulate => simulate","/data/x.csv => data.csv" };
	Out = "/home/ann/out.$(TaskIndex)"; JoinOutput = true; RequestCpus = 2; RequestMemory = 512; RequestDisk = 0;
	RequestGpus = 0; Walltime = 5400; Band = "batch"; JobPrio = 0; MaxRetries = 1; NoticePeriod = 30;
	JobLeaseDuration = 2400; FileSystemDomain = "n1"]`

// TestJobFile reads the job file of a job, as JSON and in the form for a new job. What
// the text would submit is the job.
func TestJobFile(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	w.schedd.ad, w.schedd.text = clonedAd, "7.n1" // the job waits for that one
	w.schedd.columns = []*wire.Column{{Name: "lr", Values: []string{"0.1", "0.2", "<b>${x}"}}}
	answer := w.do(as(w.request("GET", "/v1/jobs/1.n1/jobfile", ""), cookie))
	if answer.Code != http.StatusOK {
		t.Fatalf("got %d %s", answer.Code, answer.Body)
	}
	var f view.JobFile
	if err := json.Unmarshal(answer.Body.Bytes(), &f); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`job "sweep" {`, "for_each = [\n    \"0.1\",\n    \"0.2\",\n    \"<b>$${x}\",\n  ]",
		`command = ["./simulate", "--lr=${each.value}", "${task.index}", "$HOME"]`, `MODE = "fast"`,
		`"/data/x.csv"`, `walltime = "90m"`, `depends_on = ["7.n1"]`} {
		if !strings.Contains(f.Text, want) {
			t.Errorf("the file lacks %s:\n%s", want, f.Text)
		}
	}
	if len(f.Notes) != 2 || !strings.Contains(f.Notes[0], "DB_PASSWORD") ||
		!strings.Contains(f.Notes[1], "Environment.") || strings.Contains(answer.Body.String(), "t0ps3cret") {
		t.Errorf("notes %q, %s", f.Notes, f.Text)
	}
	page := w.do(as(w.request("GET", "/jobs/1.n1/clone", ""), cookie)).Body.String()
	_, form, _ := strings.Cut(page, `<textarea id="text"`)
	_, form, _ = strings.Cut(form, ">")
	form, _, _ = strings.Cut(form, "</textarea>")
	if html.UnescapeString(form) != f.Text || strings.Contains(page, "<b>$") || strings.Contains(page, "t0ps3cret") ||
		!strings.Contains(page, "This is the text of") || !strings.Contains(page, "DB_PASSWORD") {
		t.Errorf("the page is %s", page)
	}
	if again := w.plan(f.Text); !strings.Contains(again.Jobs[0].Ad, `"--lr=$(value)"`) || again.Tasks != 3 {
		t.Errorf("the plan of the text is %+v", again)
	}
}

// plan returns what a job file would submit.
func (w *testWeb) plan(text string) (p view.Plan) {
	w.Helper()
	body, err := json.Marshal(view.SubmitRequest{Text: text})
	if err != nil {
		w.Fatal(err)
	}
	answer := w.do(as(w.request("POST", "/v1/plan", string(body)), w.logIn("ann")))
	if err := json.Unmarshal(answer.Body.Bytes(), &p); err != nil || len(p.Jobs) != 1 {
		w.Fatalf("plan: %v, %s", err, answer.Body)
	}
	return p
}

// TestRefusedJobFiles are jobs whose job file nobody is shown.
func TestRefusedJobFiles(t *testing.T) {
	w := newTestWeb(t)
	cookie := w.logIn("ann")
	get := func() (int, string) {
		answer := w.do(as(w.request("GET", "/v1/jobs/1.n1/jobfile", ""), cookie))
		return answer.Code, answer.Body.String()
	}
	w.schedd.ad = `[JobName = "x"; Cmd = "/bin/true"; Arguments = { "$(lost)" }; Iwd = "/"]`
	if code, text := get(); code != http.StatusTooManyRequests ||
		!strings.Contains(text, "values of their own") {
		t.Errorf("values that were not sent: %d %s", code, text)
	}
	w.schedd.ad = `[JobName = "x"; ScriptFile = "00"; Iwd = "/"]`
	if code, text := get(); code != http.StatusConflict || !strings.Contains(text, "script") {
		t.Errorf("a script that is a file: %d %s", code, text)
	}
	w.schedd.ad = `[JobName = "x"; Cmd = "/bin/true"; Iwd = "/"]`
	if code, text := get(); code != http.StatusOK || !strings.Contains(text, `\"/bin/true\"`) {
		t.Errorf("a plain job: %d %s", code, text)
	}
	w.schedd.discreet = true
	if code, text := get(); code != http.StatusForbidden || strings.Contains(text, "/bin/true") {
		t.Errorf("of another user: %d %s", code, text)
	}
}
