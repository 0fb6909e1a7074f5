package view

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// ActRequest is the body of a change of jobs.
type ActRequest struct {
	Verb   string   `json:"verb"`             // as the command is called: hold, release, rm, …
	Select []string `json:"select"`           // selectors as for roost jobs
	States []string `json:"states,omitempty"` // only tasks in these states
	Reason string   `json:"reason,omitempty"`
	Force  bool     `json:"force,omitempty"`
	Signal string   `json:"signal,omitempty"`
	// of alter: what to ask for instead, as of qalter -l: "mem=2gb,walltime=2:00:00"
	Resources string `json:"resources,omitempty"`
	// of update: the word about it, as the flags of roost update: pause, resume, …
	Update string `json:"update,omitempty"`
	// DryRun changes nothing and counts the jobs. Expect is that count, without which
	// nothing is changed: jobs may have come since.
	DryRun bool `json:"dry_run,omitempty"`
	Expect int  `json:"expect,omitempty"`
}

// ActPlan is what a change would do.
type ActPlan struct {
	Version     int           `json:"v"`
	Jobs        int           `json:"jobs"`
	Tasks       int           `json:"tasks"` // that have not ended
	Sample      []ActSample   `json:"sample"`
	Unreachable []Unreachable `json:"unreachable,omitempty"`

	Request ActRequest `json:"-"` // for the form that confirms it
}

// ActSample is one of the jobs that a change would affect.
type ActSample struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Owner string `json:"owner"`
	State string `json:"state"`
	Tasks uint32 `json:"tasks"`
}

// ActResults is what came of a change.
type ActResults struct {
	Version int         `json:"v"`
	Changed int         `json:"changed"` // tasks
	Failed  int         `json:"failed"`  // results with an error
	Results []ActResult `json:"results"`
}

// ActResult is what came of it for one job.
type ActResult struct {
	ID    string `json:"id"`
	Tasks uint32 `json:"tasks"`
	Kind  string `json:"kind,omitempty"`
	Error string `json:"error,omitempty"`
}

// Bounds of a change.
const (
	maxSelectors = 1000
	maxReason    = 1000
	maxSample    = 20
)

// verbOf returns the verb of a name.
func verbOf(name string) (wire.ActRequest_Verb, error) {
	verbs := map[string]wire.ActRequest_Verb{"hold": wire.ActRequest_HOLD, "release": wire.ActRequest_RELEASE,
		"rm": wire.ActRequest_REMOVE, "retry": wire.ActRequest_RETRY, "checkpoint": wire.ActRequest_CHECKPOINT,
		"suspend": wire.ActRequest_SUSPEND, "resume": wire.ActRequest_RESUME, "signal": wire.ActRequest_SIGNAL,
		"rerun": wire.ActRequest_RERUN, alterVerb: wire.ActRequest_ALTER, updateVerb: wire.ActRequest_UPDATE,
		restartVerb: wire.ActRequest_UPDATE}
	verb, ok := verbs[name]
	if !ok {
		return 0, fmt.Errorf("verb %.40q: %w: there are hold, release, rm, retry, checkpoint, suspend, resume, "+
			"signal, rerun, alter, update and restart", name, roost.Invalid)
	}
	return verb, nil
}

// Act changes jobs, or shows which it would change.
func Act(c *route.Call) error {
	var body ActRequest
	if err := c.Decode(&body, func(value func(string) string) {
		body = ActRequest{Verb: value("verb"), Select: strings.Fields(value("select")), Reason: value("reason"),
			Signal: value("signal"), Resources: value("resources"), Update: value("update"),
			Force: value("force") != "", DryRun: value("expect") == ""}
		body.Expect, _ = strconv.Atoi(value("expect"))
		if state := value("state"); state != "" {
			body.States = []string{state}
		}
	}); err != nil {
		return err
	}
	verb, err := verbOf(body.Verb)
	if err == nil {
		err = body.check()
	}
	if err != nil {
		return err
	}
	plan, err := planAct(c, body)
	if err != nil {
		return err
	}
	c.Note("verb", body.Verb)
	c.Note("select", body.Select)
	c.Note("dry_run", body.DryRun)
	if body.Resources != "" {
		c.Note("resources", body.Resources)
	}
	if body.Update != "" {
		c.Note("update", body.Update)
	}
	if body.DryRun {
		if c.IsPage {
			return c.ShowPage(http.StatusOK, "acts", plan)
		}
		return c.WriteJSON(http.StatusOK, plan)
	}
	if plan.Jobs != body.Expect {
		p := route.NewProblem(http.StatusConflict, fmt.Sprintf("%d jobs match, and not %d", plan.Jobs, body.Expect),
			"look at them again with dry_run, and expect what that says")
		p.Kind = "conflict"
		return p
	}
	return changeJobs(c, verb, body)
}

func (r *ActRequest) check() error {
	switch {
	case len(r.Select) == 0:
		return fmt.Errorf("select: %w: it is not said which jobs are meant: name ids, or all", roost.Invalid)
	case len(r.Select) > maxSelectors:
		return fmt.Errorf("select: %w: there are more than %d selectors", roost.Exhausted, maxSelectors)
	case (r.Verb == alterVerb) != (r.Resources != "") || len(r.Resources) > maxResources:
		return fmt.Errorf("resources: %w: alter needs them, as in mem=2gb, and nothing else does", roost.Invalid)
	case len(r.Reason) > maxReason:
		return fmt.Errorf("reason: %w: it has more than %d characters", roost.Invalid, maxReason)
	case !r.DryRun && r.Expect <= 0:
		return fmt.Errorf("expect: %w: ask with dry_run first, and say here how many jobs that found", roost.Invalid)
	}
	return r.checkUpdate()
}

// planAct counts the jobs that a change means. Words for several jobs mean the user's
// own, as in a change, and ids any that there are.
func planAct(c *route.Call, r ActRequest) (ActPlan, error) {
	plan := ActPlan{Version: document.Version, Sample: []ActSample{}, Request: r}
	for _, s := range actSelections(r) {
		query := &wire.QueryRequest{Selection: s, History: r.Verb == "retry"}
		missing, err := queryPool(c, &wire.PoolQuery{Query: query}, plan.count)
		if err != nil {
			return plan, err
		}
		plan.Unreachable = append(plan.Unreachable, missing...)
	}
	return plan, nil
}

// actSelections returns the selections of a change: ids mean any job, and words for
// several jobs the user's own.
func actSelections(r ActRequest) (all []*wire.Selection) {
	var ids, words []string
	for _, s := range r.Select {
		if s != "" && s[0] >= '0' && s[0] <= '9' && !isJobRange(s) {
			ids = append(ids, s)
		} else {
			words = append(words, s)
		}
	}
	if len(ids) > 0 {
		all = append(all, &wire.Selection{Selectors: ids, States: r.States})
	}
	if len(words) > 0 {
		all = append(all, &wire.Selection{Selectors: words, States: r.States, Mine: true})
	}
	return all
}

// count counts one job.
func (p *ActPlan) count(s *wire.JobStatus) error {
	p.Jobs++
	p.Tasks += max(int(s.GetTasks())-document.FinishedCount(s), 0)
	if len(p.Sample) < maxSample {
		p.Sample = append(p.Sample, ActSample{s.GetId(), s.GetName(), s.GetOwner(), document.StateOf(s), s.GetTasks()})
	}
	return nil
}

// isJobRange reports whether a selector is a range of jobs, as "5-9".
func isJobRange(s string) bool {
	return strings.Contains(s, "-") && !strings.ContainsAny(s, ".[")
}

// add adds what came of one job.
func (r *ActResults) add(one *wire.ActReply_Result) {
	result := ActResult{ID: one.GetId(), Tasks: one.GetTasks(), Error: one.GetError()}
	if r.Changed += int(one.GetTasks()); result.Error != "" {
		result.Kind = route.KindName(roost.ErrorKind(one.GetKind()))
		r.Failed++
	}
	r.Results = append(r.Results, result)
}

// actOn has the schedd change jobs.
func actOn(c *route.Call, verb wire.ActRequest_Verb, r ActRequest) (done ActResults, err error) {
	if verb == wire.ActRequest_ALTER {
		return alterJobs(c, r)
	}
	done = ActResults{Version: document.Version, Results: []ActResult{}}
	err = ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		reply, err := s.Act(ctx, &wire.ActRequest{Verb: verb, Reason: r.Reason, Force: r.Force, Signal: r.Signal,
			Update:    r.updateOrderOf(),
			Selection: &wire.Selection{Selectors: r.Select, States: r.States}})
		for _, one := range reply.GetResults() {
			done.add(one)
		}
		return err
	})
	return done, err
}

func changeJobs(c *route.Call, verb wire.ActRequest_Verb, r ActRequest) error {
	done, err := actOn(c, verb, r)
	if err != nil {
		return err
	}
	c.Note("changed", done.Changed)
	c.Note("failed", done.Failed)
	// one job that was refused is a refusal; of several, each result says what came of it
	if i := slices.IndexFunc(done.Results, func(r ActResult) bool { return r.Error != "" }); i >= 0 &&
		len(done.Results) == 1 {
		p := route.NewProblem(route.KindStatus(done.Results[i].Kind), done.Results[i].Error, "")
		p.Kind = cmp.Or(done.Results[i].Kind, p.Kind)
		return p
	}
	if c.IsPage {
		if len(r.Select) == 1 && len(done.Results) == 1 {
			return c.Redirect("/jobs/" + done.Results[0].ID)
		}
		return c.ShowPage(http.StatusOK, "act_results", done)
	}
	return c.WriteJSON(http.StatusOK, done)
}
