package view

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os/user"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/etc"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/translate"
	"github.com/roost-batch/roost/internal/web/jobtext"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// SubmitRequest is the body of a submission or a plan.
type SubmitRequest struct {
	Text   string            `json:"text"`             // the job file
	Format string            `json:"format,omitempty"` // "hcl" (default), "pbs", "torque", "slurm", "condor", "auto"
	Vars   map[string]string `json:"vars,omitempty"`   // variables of the job file
	Dir    string            `json:"dir,omitempty"`    // working directory; default: the user's home
	Hold   bool              `json:"hold,omitempty"`   // hold the jobs until they are released
}

// Submission is what was submitted, as roost submit prints it.
type Submission struct {
	Version  int            `json:"v"`
	Jobs     []SubmittedJob `json:"jobs"`
	Repeated bool           `json:"repeated"` // the jobs existed already: the key was used before
}

// SubmittedJob is a new job.
type SubmittedJob struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Tasks int    `json:"tasks"`
}

// SubmitForm is the page for a new job.
type SubmitForm struct {
	Version int            `json:"v"`
	Key     string         `json:"key"` // submit key, so that sending the form twice makes one job
	Request SubmitRequest  `json:"request"`
	Problem *route.Problem `json:"problem,omitempty"` // what was wrong
	Plan    *Plan          `json:"plan,omitempty"`
	Sample  string         `json:"-"` // whose text it has
	Clone   string         `json:"-"` // the job whose text it has
	Notes   []string       `json:"-"` // what that job has and the text has not
}

// Formats lists the formats of job files.
func (SubmitForm) Formats() []string {
	return append([]string{"hcl", "auto"}, translate.Dialects()...)
}

// Samples lists the sample job files by name.
func (SubmitForm) Samples() (names []string) {
	files, _ := etc.JobFiles.ReadDir("jobs") // they are in the program
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f.Name(), ".hcl"))
	}
	return names
}

func newSubmitForm() SubmitForm {
	return SubmitForm{Version: document.Version, Key: rand.Text(), Request: SubmitRequest{Format: "hcl"}}
}

// ShowSubmitForm shows the page for a new job, with the text of a sample if the address
// names one.
func ShowSubmitForm(c *route.Call) (any, error) {
	f := newSubmitForm()
	name := c.QueryValue("sample")
	if name == "" {
		return f, nil
	}
	if !slices.Contains(f.Samples(), name) {
		return nil, fmt.Errorf("sample %.40q: %w: there are %s", name, roost.NotFound, strings.Join(f.Samples(), ", "))
	}
	text, err := etc.JobFiles.ReadFile("jobs/" + name + ".hcl")
	f.Sample, f.Request.Text = name, string(text)
	return f, err
}

// Plan is what a job file would submit.
type Plan struct {
	Version    int          `json:"v"`
	Jobs       []PlannedJob `json:"jobs"`
	Tasks      int          `json:"tasks"`
	Translated string       `json:"translated,omitempty"` // the job file that another format was translated to
}

// PlannedJob is a job of a plan.
type PlannedJob struct {
	Name    string             `json:"name"`
	Tasks   int                `json:"tasks"`
	Request document.Resources `json:"request"`
	Ad      string             `json:"ad"`
}

// Submitter takes job files.
type Submitter struct{ Parser jobtext.Parser }

// maxKey bounds a submit key.
const maxKey = 128

// Submit puts the jobs of a job file into the queue. The header Idempotency-Key is the
// submit key: the same key again gives the same jobs.
func (s Submitter) Submit(c *route.Call) error {
	key := c.Request.Header.Get("Idempotency-Key")
	body, err := decodeSubmit(c, &key)
	if err != nil {
		return err
	}
	if len(key) > maxKey || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return fmt.Errorf("Idempotency-Key: %w: it has at most %d printable characters", roost.Invalid, maxKey)
	}
	if key == "" {
		key = rand.Text()
	}
	parsed, err := s.parse(c, body)
	var reply *wire.SubmitReply
	if err == nil {
		reply, err = submitJobs(c, key, parsed, body.Hold)
	}
	if err != nil && c.IsPage {
		p := route.ProblemOf(err)
		return c.ShowPage(p.Status, "submit", SubmitForm{Version: document.Version, Key: key,
			Request: body, Problem: p})
	}
	if err != nil {
		return err
	}
	done := Submission{Version: document.Version, Jobs: []SubmittedJob{}, Repeated: reply.GetRepeatedKey()}
	for i, id := range reply.GetIds() {
		j := SubmittedJob{ID: id}
		if i < len(parsed.Jobs) {
			j.Name, j.Tasks = parsed.Jobs[i].Name, parsed.Jobs[i].Count
		}
		done.Jobs = append(done.Jobs, j)
	}
	c.Note("jobs", reply.GetIds())
	c.Note("repeated", reply.GetRepeatedKey())
	if c.IsPage {
		if len(done.Jobs) == 1 {
			return c.Redirect("/jobs/" + done.Jobs[0].ID)
		}
		return c.Redirect("/jobs")
	}
	return c.WriteJSON(http.StatusCreated, done)
}

// Plan shows what a job file would submit.
func (s Submitter) Plan(c *route.Call) error {
	key := ""
	body, err := decodeSubmit(c, &key)
	if err != nil {
		return err
	}
	parsed, err := s.parse(c, body)
	plan := Plan{Version: document.Version, Jobs: []PlannedJob{}, Translated: parsed.Translated}
	for _, j := range parsed.Jobs {
		ad, aerr := classad.Parse(j.Ad)
		if aerr != nil {
			return fmt.Errorf("job %q: %w: %w", j.Name, roost.Internal, aerr)
		}
		plan.Jobs = append(plan.Jobs, PlannedJob{j.Name, j.Count, requestOf(ad), j.Ad})
		plan.Tasks += j.Count
	}
	if c.IsPage {
		form := SubmitForm{Version: document.Version, Key: key, Request: body, Plan: &plan}
		status := http.StatusOK
		if err != nil {
			form.Problem, form.Plan = route.ProblemOf(err), nil
			status = form.Problem.Status
		}
		return c.ShowPage(status, "submit", form)
	}
	if err != nil {
		return err
	}
	return c.WriteJSON(http.StatusOK, plan)
}

// requestOf reads what a job's ad asks for.
func requestOf(ad *classad.Ad) document.Resources {
	number := func(name string) float64 { f, _ := ad.Real(name); return f }
	return document.Resources{CPUs: number(roost.AttrRequestCpus),
		Memory: int64(number(roost.AttrRequestMemory) * float64(roost.MiB)),
		Disk:   int64(number(roost.AttrRequestDisk) * float64(roost.KiB)), GPUs: int64(number(roost.AttrRequestGpus))}
}

// decodeSubmit reads the body of a submission. key is that of a form, if one is sent.
func decodeSubmit(c *route.Call, key *string) (body SubmitRequest, err error) {
	err = c.Decode(&body, func(value func(string) string) {
		body = SubmitRequest{Text: strings.ReplaceAll(value("text"), "\r\n", "\n"), Format: value("format"),
			Dir: value("dir"), Hold: value("hold") != ""}
		*key = value("key")
	})
	if err == nil && body.Dir != "" && (!path.IsAbs(body.Dir) || path.Clean(body.Dir) != body.Dir) {
		err = fmt.Errorf("dir: %w: it is an absolute path", roost.Invalid)
	}
	return body, err
}

// parse reads the job file. Its mistakes are an error with their places.
func (s Submitter) parse(c *route.Call, body SubmitRequest) (jobtext.Result, error) {
	home := "/"
	if u, err := user.Lookup(c.Session.User); err == nil && path.IsAbs(u.HomeDir) {
		home = u.HomeDir
	}
	if body.Dir == "" {
		body.Dir = home
	}
	r, err := s.Parser.Parse(c.Context(), jobtext.Source{Text: body.Text, Format: body.Format, Vars: body.Vars,
		User: c.Session.User, Home: home, Dir: body.Dir, Now: time.Now()})
	if err == nil && len(r.Diagnostics) > 0 {
		p := route.NewProblem(http.StatusUnprocessableEntity, r.Diagnostics[0].Summary, r.Diagnostics[0].Detail)
		p.Kind, p.Diagnostics, p.Text = "invalid", r.Diagnostics, r.Text
		return r, p
	}
	return r, err
}

// submitJobs hands parsed jobs to the schedd.
func submitJobs(c *route.Call, key string, parsed jobtext.Result, hold bool) (reply *wire.SubmitReply, err error) {
	req := &wire.SubmitRequest{Key: key}
	for _, j := range parsed.Jobs {
		ad, err := classad.Parse(j.Ad)
		if err != nil {
			return nil, fmt.Errorf("job %q: %w: %w", j.Name, roost.Internal, err)
		}
		if hold {
			ad.SetBool(roost.AttrHoldOnSubmit, true)
		}
		spec := &wire.JobSpec{Ad: ad.String(), Count: uint32(j.Count)}
		for _, col := range j.Columns {
			spec.Columns = append(spec.Columns, &wire.Column{Name: col.Name, Values: col.Values})
		}
		req.Jobs = append(req.Jobs, spec)
	}
	err = ask(c, func(ctx context.Context, schedd wire.ScheddClient) (err error) {
		reply, err = wire.SendSubmission(ctx, schedd, req)
		return err
	})
	return reply, err
}
