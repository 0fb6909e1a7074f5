package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

func qstatCommand() *command {
	return &command{
		name: "qstat", group: groupPBS, brief: "list jobs as PBS does", args: "[-f] [-s] [-x] [-t] [-w] [-u USERS] [JOB… | @NODE…]", raw: true, most: -1, do: qstat,
		about: "Lists the jobs of all users that have not ended, from wherever in the pool they were submitted, or the jobs named, or as @NODE those submitted at a node, in the layout of OpenPBS. A job that has ended is shown with -x only.",
		examples: []example{
			{"qstat", "all jobs"},
			{"qstat @n2", "those that were submitted at n2"},
			{"qstat -s 123", "why a job waits"},
			{"qstat -fx 123", "everything about a job that may have ended"},
		},
		flags: []ucli.Flag{
			short("f", "", "everything about each job, an attribute a line"),
			short("s", "", "in the other layout of OpenPBS, with a line about why a job waits or where it runs"),
			short("x", "", "also jobs that have ended"),
			short("H", "", "only jobs that have ended"),
			short("t", "", "also the tasks of arrays"),
			short("w", "", "wide: nothing is cut, and lines of -f are not folded"),
			short("u", "USERS", "only jobs of these users, with commas between them"),
			short("E", "", "taken and not needed: any number of jobs are asked about at once"),
			short("1", "", "with -f: lines are not folded; with -s: all about a job in one line"),
		},
	}
}

// pbsWidths are the columns of the list, which clients cut by position: id, name, user, time, queue.
type pbsWidths struct{ id, name, user, queue int }

func qstat(c *call) error {
	if c.asksVersion() {
		return nil
	}
	o, err := getopt(c.args, "fsxHtwu:E1")
	if err != nil {
		return c.pbsUsage(err.Error())
	}
	found, code, err := c.pbsJobs(o)
	if err != nil {
		return c.pbsFail(err)
	}
	if o.has('u') {
		found = ofUsers(found, o.last('u'))
	}
	switch {
	case o.has('f'):
		c.pbsFull(found, o.has('w') || o.has('1'))
	case o.has('s'):
		c.pbsComments(found, o.has('w'), o.has('1'))
	default:
		c.pbsTable(found, o.has('w'))
	}
	if code != 0 {
		return exit(code)
	}
	return nil
}

// pbsList asks for jobs as PBS names them.
type pbsList struct {
	*call
	options
	ended   bool     // those that have ended are wanted, too
	missing []silent // whose jobs are not among what was found
}

// pbsJobs asks for the jobs that the command line names, or all, and says which of them there are not. All are asked for at once; only if that
// meets one that is unknown are they asked for singly.
func (c *call) pbsJobs(o options) (found []*wire.JobStatus, code int, err error) {
	l := &pbsList{call: c, options: o, ended: o.has('x') || o.has('H')}
	if len(o.operands) == 0 {
		found, err = l.whole("")
		return found, 0, err
	}
	for _, text := range o.operands {
		list, bad, err := l.operand(text)
		if err != nil {
			return nil, 0, err
		}
		if bad != 0 {
			code = bad
		}
		found = append(found, list...)
	}
	return found, code, nil
}

// ask asks the schedd of that name; "" stands for those that the selectors name, or all.
func (l *pbsList) ask(at string, selectors []string, tasks bool) (list []*wire.JobStatus, err error) {
	req := &wire.QueryRequest{Selection: &wire.Selection{Selectors: selectors}, History: true, Tasks: tasks, Ads: l.has('f') || l.has('s')}
	if len(selectors) == 0 {
		req.History = l.ended
	}
	list, l.missing, err = l.queryPool(at, req)
	if err == nil && len(selectors) > 0 && len(list) == 0 {
		err = silence(l.missing)
	}
	return list, err
}

// whole lists all jobs of a schedd, or of all.
func (l *pbsList) whole(at string) ([]*wire.JobStatus, error) {
	found, err := l.ask(at, nil, false)
	l.tellSilent(l.missing)
	if l.ended == l.has('H') { // -x wants both kinds; a job is in the queue for a moment after its end
		found = keep(found, func(s *wire.JobStatus) bool { return final(s) == l.ended })
	}
	found = backwards(found)
	if l.has('t') && err == nil {
		found, err = l.withTasks(found)
	}
	return found, err
}

// operand lists what one of them names: a job, or as in "@n2" a schedd.
func (l *pbsList) operand(text string) (list []*wire.JobStatus, code int, err error) {
	if at, ok := strings.CutPrefix(text, "@"); ok && at != "" {
		list, err = l.whole(at)
		if errors.Is(err, roost.NotFound) {
			fmt.Fprintf(l.stderr, "qstat: Unknown host %s\n", at)
			return nil, pbsUnknownJob, nil
		}
		return list, 0, err
	}
	id, ok := pbsID(text)
	if !ok {
		fmt.Fprintf(l.stderr, "qstat: illegally formed job identifier: %s\n", text)
		return nil, 1, nil
	}
	list, err = l.ask(pbsHost(text), []string{id}, everyTask([]string{id}))
	switch {
	case errors.Is(err, roost.NotFound) || err == nil && len(list) == 0:
		fmt.Fprintf(l.stderr, "qstat: Unknown Job Id %s\n", text)
		return nil, pbsUnknownJob, nil
	case err != nil:
		return nil, 0, err
	case !l.ended && final(list[0]) && len(list) == 1:
		fmt.Fprintf(l.stderr, "qstat: %s Job has finished, use -x or -H to obtain historical job information\n", text)
		return nil, pbsFinished, nil
	}
	if l.has('t') {
		list, err = l.withTasks(list)
	}
	return list, 0, err
}

// withTasks puts the tasks of arrays behind them.
func (l *pbsList) withTasks(list []*wire.JobStatus) ([]*wire.JobStatus, error) {
	var all []*wire.JobStatus
	for _, s := range list {
		all = append(all, s)
		if !s.GetArray() || strings.Contains(s.GetId(), "[") {
			continue
		}
		tasks, err := l.ask("", []string{s.GetId()}, true)
		if err != nil {
			return nil, err
		}
		all = append(all, tasks...)
	}
	return all, nil
}

func keep(list []*wire.JobStatus, want func(*wire.JobStatus) bool) []*wire.JobStatus {
	var kept []*wire.JobStatus
	for _, s := range list {
		if want(s) {
			kept = append(kept, s)
		}
	}
	return kept
}

func ofUsers(list []*wire.JobStatus, users string) []*wire.JobStatus {
	return keep(list, func(s *wire.JobStatus) bool {
		for _, u := range strings.Split(users, ",") {
			if name, _, _ := strings.Cut(strings.TrimSpace(u), "@"); name == s.GetOwner() {
				return true
			}
		}
		return false
	})
}

// backwards turns newest first into oldest first, which is PBS's order.
func backwards(list []*wire.JobStatus) []*wire.JobStatus {
	for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
		list[i], list[j] = list[j], list[i]
	}
	return list
}

// pbsTable prints the list. Nothing is printed when there is nothing.
func (c *call) pbsTable(list []*wire.JobStatus, wide bool) {
	if len(list) == 0 {
		return
	}
	w := pbsWidths{16, 16, 16, 5}
	if wide {
		w = pbsWidths{30, 15, 15, 15}
	}
	row := func(id, name, user, used, state, queue string) {
		line := fmt.Sprintf("%-*s  %-*s %-*s  %8s %1s %-*s", w.id, id, w.name, name, w.user, user, used, state, w.queue, queue)
		fmt.Fprintln(c.stdout, strings.TrimRight(line, " "))
	}
	dashes := func(n int) string { return strings.Repeat("-", n) }
	row("Job id", "Name", "User", "Time Use", "S", "Queue")
	row(dashes(w.id), dashes(w.name), dashes(w.user), "--------", "-", dashes(w.queue))
	for _, s := range list {
		id := pbsName(s.GetId(), s.GetArray())
		if !wide {
			id = shortHost(id)
		}
		row(cutPBS(id, w.id), cutPBS(oneWord(s.GetName()), w.name), cutPBS(s.GetOwner(), w.user), timeUse(s), pbsState(s), pbsQueue(s))
	}
}

// shortHost leaves the first part of the host's name.
func shortHost(id string) string {
	seq, host, ok := strings.Cut(id, ".")
	if !ok {
		return id
	}
	host, _, _ = strings.Cut(host, ".")
	return seq + "." + host
}

func cutPBS(text string, width int) string {
	if len(text) <= width {
		return text
	}
	return text[:width-1] + "*"
}

// oneWord keeps clients that split lines at blanks from losing their place.
func oneWord(name string) string {
	if name == "" {
		return "-"
	}
	return strings.ReplaceAll(printable(name), " ", "_")
}

// timeUse is the CPU time that was used, "0" before there is any.
func timeUse(s *wire.JobStatus) string {
	e := s.GetExit()
	if cpu := time.Duration(e.GetUserCpu() + e.GetSystemCpu()); cpu >= time.Second {
		return clock(cpu)
	}
	if s.GetStarted() == 0 {
		return "0"
	}
	return "00:00:00"
}

// pbsState is PBS's letter: an array that has begun is B, and a task of an array that has ended is X while the array goes on.
func pbsState(s *wire.JobStatus) string {
	if s.GetArray() && s.GetState() == "" && !final(s) && (s.GetStarted() != 0 || finished(s) > 0) {
		return "B"
	}
	name := stateOf(s)
	if name == "failed" {
		return "F"
	}
	state, err := roost.ParseTaskState(name)
	if err != nil {
		return "Q"
	}
	if state == roost.Suspended && strings.HasPrefix(s.GetSuspendedBy(), "owner") {
		return "U" // the workstation is in use
	}
	return string(state.PBSLetter())
}

func pbsQueue(s *wire.JobStatus) string {
	if s.GetQueue() != "" {
		return s.GetQueue()
	}
	return "batch"
}
