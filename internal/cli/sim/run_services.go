package sim

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/pool"
)

// serviceFlags are of what is done to services while a pool runs.
func serviceFlags() []ucli.Flag {
	return []ucli.Flag{
		&ucli.StringSliceFlag{Name: "update", Usage: "run: update the service JOB of a mix at that `JOB@TIME` of the " +
			"clock of the pool, as in web@10m; may be repeated"},
		&ucli.StringSliceFlag{Name: "drain", Usage: "run: drain the machines whose names match at `MACHINES@TIME`, " +
			"as in node3@20m or \"node1*@20m+30m\" for half an hour; may be repeated"},
	}
}

// drainLength is how long machines are drained if their administrator does not say it.
const drainLength = time.Hour

// planActions adds to a pool what the flags say of updates and drains.
func planActions(c *frame.Invocation, from *simConfig) error {
	for n, text := range c.StringsFlag("update") {
		name, at, _, err := readAction("update", text)
		if err != nil {
			return err
		}
		found, others := false, []string{}
		for i := range from.config.Jobs {
			j := &from.config.Jobs[i]
			label, _ := j.Spec.Ad.Str(roost.AttrJobName)
			if j.Service == nil {
				continue
			}
			if others = append(others, label); label == name {
				found = true
				from.config.Actions = append(from.config.Actions, pool.UserAction{At: max(at, j.At), Job: i,
					Environment: fmt.Sprintf("ROOST_SIM_UPDATE=%d", n+1)})
			}
		}
		if !found {
			hint := "a job with a block service {} is a service"
			if len(others) > 0 {
				hint = "its services: " + document.PrintableText(strings.Join(others[:min(len(others), 10)], ", "))
			}
			return frame.WithHint(frame.UsageErrorf("--update %s: the file has no service of that name",
				document.PrintableText(text)), hint)
		}
	}
	for _, text := range c.StringsFlag("drain") {
		pattern, at, length, err := readAction("drain", text)
		if err != nil {
			return err
		}
		before := len(from.config.Drains)
		for i := range from.config.Machines {
			name := from.config.Machines[i].Name
			if ok, err := path.Match(pattern, name); err == nil && ok {
				from.config.Drains = append(from.config.Drains, pool.MachineDrain{At: at, Machine: name,
					Span: cmp.Or(length, drainLength)})
			}
		}
		if len(from.config.Drains) == before {
			return frame.WithHint(frame.UsageErrorf("--drain %s: no machine has such a name",
				document.PrintableText(text)), fmt.Sprintf("the first of its %s is %s",
				document.Plural(len(from.config.Machines), "machine"),
				document.PrintableText(from.config.Machines[0].Name)))
		}
	}
	return nil
}

// readAction reads "NAME@TIME" or "NAME@TIME+LENGTH".
func readAction(flag, text string) (name string, at, length time.Duration, err error) {
	i := strings.LastIndex(text, "@")
	begins, lasts, long := strings.Cut(text[i+1:], "+")
	if at, err = roost.ParseDuration(begins); err == nil && long {
		length, err = roost.ParseDuration(lasts)
	}
	if long && flag == "update" {
		return "", 0, 0, frame.WithHint(frame.UsageErrorf("--update %s: an update has no length",
			document.PrintableText(text)), "as in --update web@10m")
	}
	if i < 1 || err != nil || at < 0 || long && length <= 0 {
		hint := "as in --update web@10m"
		if flag == "drain" {
			hint = "as in --drain node3@20m or --drain node3@20m+30m"
		}
		return "", 0, 0, frame.WithHint(frame.UsageErrorf("--%s %s: that is no name with a time", flag,
			document.PrintableText(text)), hint)
	}
	return text[:i], at, length, nil
}

// serviceUpdate is what is seen of an update of a service.
type serviceUpdate struct {
	job          roost.JobID
	began, ended time.Duration
	state        string // empty: it goes on
	tasks        int    // that there are to be
	leastReady   int    // while it went on
}

// drainedMachine is what is seen of a machine that is drained.
type drainedMachine struct {
	name        string
	at, emptyAt time.Duration
	had         int // tasks that ran there
	seen        bool
}

// watchedService is a service whose tasks are counted.
type watchedService struct {
	tasks  int
	ready  map[int]bool
	update *serviceUpdate // nil: there is none
}

// serviceWatch follows the updates of services and the drains of machines in a run.
type serviceWatch struct {
	services map[roost.JobID]*watchedService
	running  map[string]int // tasks by machine
	updates  []*serviceUpdate
	drains   []*drainedMachine
}

// watchServices returns the watch of a pool, nil where it has neither services nor
// drains.
func watchServices(from *pool.SimulationConfig) *serviceWatch {
	if len(from.Drains) == 0 && !slices.ContainsFunc(from.Jobs, func(j pool.JobConfig) bool {
		return j.Service != nil
	}) {
		return nil
	}
	w := &serviceWatch{services: map[roost.JobID]*watchedService{}, running: map[string]int{}}
	for _, d := range from.Drains {
		w.drains = append(w.drains, &drainedMachine{name: d.Machine, at: d.At, emptyAt: -1})
	}
	slices.SortStableFunc(w.drains, func(a, b *drainedMachine) int { return cmp.Compare(a.at, b.at) })
	return w
}

// observe takes in an event of the run.
func (w *serviceWatch) observe(s audit.Event) {
	w.noteDrains(s.At)
	switch s.Type {
	case audit.Began:
		w.running[s.Node]++
	case audit.Ended:
		w.running[s.Node]--
		w.noteDrains(s.At)
	case audit.SubmissionStored:
		w.services[s.Job] = &watchedService{tasks: s.Tasks, ready: map[int]bool{}}
	}
	x := w.services[s.Job]
	if x == nil {
		return
	}
	switch s.Type {
	case audit.CountSet:
		x.tasks = s.Tasks
	case audit.TaskReady:
		x.ready[s.Index] = true
	case audit.PlannedStop, audit.Replaced, audit.TaskUnready:
		delete(x.ready, s.Index)
	case audit.UpdateMoves:
		if x.update == nil {
			x.update = &serviceUpdate{job: s.Job, began: s.At, tasks: x.tasks, leastReady: len(x.ready)}
			w.updates = append(w.updates, x.update)
		}
	case audit.UpdateDone, audit.UpdateWaits:
		if u := x.update; u != nil {
			u.ended, u.state = s.At, "done"
			if s.Type == audit.UpdateWaits {
				u.state = s.Detail
			}
			x.update = nil
		}
	}
	if u := x.update; u != nil {
		u.leastReady = min(u.leastReady, len(x.ready))
	}
}

// noteDrains notes which of the drained machines are empty.
func (w *serviceWatch) noteDrains(now time.Duration) {
	for _, d := range w.drains {
		if d.at > now {
			return
		}
		if !d.seen {
			d.seen, d.had = true, w.running[d.name]
		}
		if d.emptyAt < 0 && w.running[d.name] == 0 {
			d.emptyAt = now
		}
	}
}

// readyTasks returns how many tasks of services are ready, and how many there are to be.
func (w *serviceWatch) readyTasks(jobs []pool.JobOutcome, isService func(i int) bool) (ready, tasks int) {
	for i, o := range jobs {
		if x := w.services[o.ID]; x != nil && isService(i) {
			ready, tasks = ready+len(x.ready), tasks+x.tasks
		}
	}
	return ready, tasks
}

// print says what became of services, updates and drains.
func (w *serviceWatch) print(out io.Writer, r *simResult) {
	if ready, tasks := w.readyTasks(r.pool.Outcomes(), r.isService); tasks > 0 {
		fmt.Fprintf(out, "  services      %d of %s are ready\n", ready, document.Plural(tasks, "task"))
	}
	for _, u := range w.updates {
		if u.state == "" {
			fmt.Fprintf(out, "  update        of %v at %s: it still goes on; at least %d of %d tasks were ready\n",
				u.job, audit.ClockText(u.began), u.leastReady, u.tasks)
			continue
		}
		fmt.Fprintf(out, "  update        of %v at %s: %s after %s; at least %d of %d tasks were ready\n",
			u.job, audit.ClockText(u.began), u.state, durationText(u.ended-u.began), u.leastReady, u.tasks)
	}
	for _, d := range w.drains {
		switch {
		case !d.seen:
			fmt.Fprintf(out, "  drain         of %s: not yet\n", d.name)
		case d.emptyAt < 0:
			fmt.Fprintf(out, "  drain         of %s at %s: %d of %s still run there\n", d.name, audit.ClockText(d.at),
				w.running[d.name], document.Plural(d.had, "task"))
		default:
			fmt.Fprintf(out, "  drain         of %s at %s: its %s had left after %s\n", d.name, audit.ClockText(d.at),
				document.Plural(d.had, "task"), durationText(d.emptyAt-d.at))
		}
	}
}

// addTo adds the same to a JSON document.
func (w *serviceWatch) addTo(doc frame.JSONDocument, r *simResult) {
	ready, tasks := w.readyTasks(r.pool.Outcomes(), r.isService)
	doc["services"] = frame.JSONDocument{"tasks": tasks, "ready": ready}
	updates, drains := []frame.JSONDocument{}, []frame.JSONDocument{}
	for _, u := range w.updates {
		one := frame.JSONDocument{"job": u.job.String(), "at_seconds": u.began.Seconds(),
			"state": cmp.Or(u.state, "rolling"), "tasks": u.tasks, "least_ready": u.leastReady}
		if u.state != "" {
			one["took_seconds"] = (u.ended - u.began).Seconds()
		}
		updates = append(updates, one)
	}
	for _, d := range w.drains {
		one := frame.JSONDocument{"machine": d.name, "at_seconds": d.at.Seconds(), "tasks": d.had}
		if d.emptyAt >= 0 {
			one["took_seconds"] = (d.emptyAt - d.at).Seconds()
		}
		drains = append(drains, one)
	}
	doc["updates"], doc["drains"] = updates, drains
}

// isService reports whether a job of the run is a service.
func (r *simResult) isService(i int) bool { return r.config.Jobs[i].Service != nil }
