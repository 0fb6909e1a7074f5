package submit

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/schedd/queue/jobad"
	"github.com/roost-batch/roost/schedd/queue/update"
)

// updateSettings are the settings of an update block.
var updateSettings = []string{"at_once", "surge", "max_down", "settle", "ready_within", "progress", "failures",
	"on_failure", "canary", "promote", "disruptions", "pulse", "tasks", "resize"}

const updateExample = "update { max_down = 1 }"

// updateReader reads one update block.
type updateReader struct {
	*jobBuilder // of the block
	ad          *classad.Ad
	policy      update.Policy
	places      map[string]hcl.Range // of the settings
}

// readUpdate reads the update block. It says how tasks of a service are replaced, and how
// many of them may be down for reasons that are planned.
func (b *jobBuilder) readUpdate() {
	block := b.onlyBlock("update", updateExample, updateSettings, nil)
	if block == nil {
		return
	}
	if !b.isService() {
		b.reportProblem(block.TypeRange, "update is for services",
			"The tasks of this job run once and end. Add a service block if they are to run always, or remove update.")
		return
	}
	r := &updateReader{jobBuilder: b.inBlock(block), ad: classad.New(), policy: update.DefaultPolicy(),
		places: map[string]hcl.Range{}}
	for name, a := range block.Body.Attributes {
		r.places[name] = a.Expr.Range()
	}
	problems := len(b.parser.diags)
	r.readAmounts()
	r.readTimes()
	r.readFailures()
	r.readCanary()
	r.readResize()
	r.readUpdateTasks()
	if len(b.parser.diags) == problems {
		r.checkTogether(block.TypeRange, cmp.Or(b.leastTasks, b.tasks.count))
	}
	b.ad.SetAd(roost.AttrUpdate, r.ad)
}

// readAmounts reads how many tasks may be replaced at once, and be down.
func (r *updateReader) readAmounts() {
	if a, ok := r.amount("at_once"); ok {
		r.policy.AtOnce = a
		r.ad.SetString(roost.AttrAtOnce, a.String())
	}
	if a, ok := r.amount("surge"); ok {
		r.policy.Surge = a
		r.ad.SetString(roost.AttrSurge, a.String())
	}
	if a, ok := r.amount("max_down"); ok {
		r.policy.MaxDown, r.policy.MaxDownSet = a, true
		r.ad.SetString(roost.AttrMaxDown, a.String())
	}
}

// amount reads a number of tasks, or a part of them as a text.
func (r *updateReader) amount(name string) (a update.Amount, ok bool) {
	v, at, ok := r.constantValue(name)
	if !ok {
		return a, false
	}
	hint := fmt.Sprintf("Write a number of tasks (%s = 2), or a part of them (%s = \"10%%\").", name, name)
	switch v.Type() {
	case cty.Number:
		n, ok := r.checkInteger(v, at, name, 0, roost.MaxTasks, hint)
		return update.Amount{Number: int(n)}, ok
	case cty.String:
		a, err := update.ParseAmount(v.AsString())
		if err != nil {
			r.reportProblem(at, fmt.Sprintf("%q is no number of tasks", truncateText(v.AsString())), hint)
		}
		return a, err == nil
	}
	r.reportProblem(at, name+" has to be a number or a text", fmt.Sprintf("It is %s. %s", describeValue(v), hint))
	return a, false
}

// readTimes reads the times of an update.
func (r *updateReader) readTimes() {
	for _, t := range []struct {
		name, attribute string
		to              *time.Duration
	}{
		{"settle", roost.AttrSettling, &r.policy.Settling},
		{"ready_within", roost.AttrReadyWithin, &r.policy.ReadyWithin},
		{"progress", roost.AttrProgress, &r.policy.Progress}, {"pulse", roost.AttrPulse, &r.policy.Pulse},
	} {
		if d, _, ok := r.resourceReader().constantDuration(t.name, 0); ok {
			*t.to = d
			r.ad.SetReal(t.attribute, d.Seconds())
		}
	}
}

// readFailures reads what may fail, and what follows from it.
func (r *updateReader) readFailures() {
	if n, ok := r.constantInt("failures", 0, roost.MaxTasks, "It is how many tasks may fail in an update."); ok {
		r.policy.Failures = int(n)
		r.ad.SetInt(roost.AttrFailures, n)
	}
	if n, ok := r.constantInt("disruptions", 0, roost.MaxTasks,
		"It is how many running tasks an update may stop; the others stay as they are."); ok {
		r.policy.Disruptions = int(n)
		r.ad.SetInt(roost.AttrDisruptions, n)
	}
	const hint = "Write \"undo\" (go back to the revision before), \"pause\" (wait for you) or \"keep\" (stop, and " +
		"leave each task as it is)."
	if s, at, ok := r.constantText("on_failure", hint); ok {
		if _, err := update.ParseFailureAction(s); err != nil {
			r.reportProblem(at, fmt.Sprintf("on_failure cannot be %q", truncateText(s)),
				hint+nearestHint(s, []string{"undo", "pause", "keep"}))
			return
		}
		r.ad.SetString(roost.AttrOnFailure, s)
	}
}

// readCanary reads which tasks try a new revision first.
func (r *updateReader) readCanary() {
	if n, ok := r.constantInt("canary", 0, roost.MaxTasks,
		"It is how many tasks get the new revision first, and run until it is promoted."); ok {
		r.policy.Canary = int(n)
		r.ad.SetInt(roost.AttrCanary, n)
	}
	const hint = "Write \"manual\" (roost update JOB --promote goes on), or after what time it goes on by itself: " +
		"promote = \"10m\"."
	s, at, ok := r.constantText("promote", hint)
	switch {
	case !ok:
		return
	case r.policy.Canary == 0:
		r.reportProblem(at, "promote without canary", "There is nothing to promote. Add canary = 1, or remove promote.")
	case s == "manual":
	default:
		d, err := roost.ParseDuration(s)
		if err != nil || d <= 0 {
			r.reportProblem(at, fmt.Sprintf("%q is neither manual nor a length of time", truncateText(s)), hint)
			return
		}
		r.ad.SetReal(roost.AttrPromoteAfter, d.Seconds())
	}
}

// readResize reads how a task gets other CPU and memory.
func (r *updateReader) readResize() {
	const hint = "Write \"in-place\" (where the task runs, if its machine has room) or \"restart\" (for a program " +
		"that reads its limits once)."
	s, at, ok := r.constantText("resize", hint)
	switch {
	case !ok:
	case s != "in-place" && s != "restart":
		r.reportProblem(at, fmt.Sprintf("resize cannot be %q", truncateText(s)),
			hint+nearestHint(s, []string{"in-place", "restart"}))
	default:
		r.policy.ResizeByRestart = s == "restart"
		r.ad.SetString(roost.AttrResize, s)
	}
}

// readUpdateTasks reads to which tasks updates are limited.
func (r *updateReader) readUpdateTasks() {
	s, at, ok := r.constantText("tasks", "Write their numbers: tasks = \"0-9\".")
	if !ok {
		return
	}
	list, err := jobad.ParseUpdateTasks(s)
	if err != nil {
		r.reportProblem(at, fmt.Sprintf("%q are no tasks", truncateText(s)), "Write their numbers: tasks = \"0-9,12\".")
		return
	}
	r.policy.Tasks = list
	r.ad.SetString(roost.AttrUpdateTasks, s)
}

// checkTogether reports settings that contradict each other or the number of tasks.
func (r *updateReader) checkTogether(block hcl.Range, count int) {
	if at, ok := r.places["surge"]; ok && r.policy.Surge != (update.Amount{}) && len(r.columns) > 0 {
		r.reportProblem(at, "surge does not fit", "Each task has values of its own from for_each, and further tasks "+
			"would have none. Remove surge, and write max_down = 1.")
		return
	}
	for _, p := range r.policy.Problems(count) {
		at, ok := r.places[p.Field]
		if !ok {
			at = block
		}
		cause, cure, _ := strings.Cut(p.Text, ": ")
		text := strings.ToUpper(cause[:1]) + cause[1:] + ". " + capitalised(cure)
		if !p.Warning {
			r.reportProblem(at, p.Field+" does not fit", text)
			return
		}
		warnOf(r.parser, at, "the service can be down as a whole", text)
	}
}

// capitalised makes a sentence of a cure.
func capitalised(s string) string {
	if s == "" {
		return ""
	}
	return strings.ToUpper(s[:1]) + s[1:] + "."
}
