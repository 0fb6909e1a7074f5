package cli

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/qstat"
	"github.com/roost-batch/roost/internal/wire"
)

// pbsList asks for jobs as PBS names them.
type pbsList struct {
	*call
	qstat.Options
	operands []string
	out      io.Writer
	missing  []silent // whose jobs are not among what was found
}

// run calls f with the jobs that the command line names, or all, and says which of them there are not. All are asked for at once; only if that
// meets one that is unknown are they asked for singly.
func (l *pbsList) run(f func(*wire.JobStatus) error) (code int, err error) {
	each := func(list []*wire.JobStatus) error {
		for _, s := range list {
			if l.wanted(s) {
				if err := f(s); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if len(l.operands) == 0 {
		found, err := l.whole("", "")
		if err == nil {
			err = each(found)
		}
		return 0, err
	}
	for _, text := range l.operands {
		list, bad, err := l.operand(text)
		if err == nil {
			err = each(list)
		}
		if err != nil {
			return 0, err
		}
		if bad != 0 {
			code = bad
		}
	}
	return code, nil
}

// wanted reports whether a job meets the options that choose.
func (l *pbsList) wanted(s *wire.JobStatus) bool {
	switch {
	case len(l.Users) > 0 && !slices.Contains(l.Users, s.GetOwner()):
		return false
	case l.Arrays && !(s.GetArray() && !isSubjob(s)):
		return false
	case l.States != "" && !strings.Contains(l.States, pbsState(s)):
		return false
	}
	return true
}

// isSubjob reports whether a row is a task of an array.
func isSubjob(s *wire.JobStatus) bool {
	return s.GetArray() && s.GetState() != "" && strings.Contains(s.GetId(), "[")
}

// detailed reports whether more is to be told than the plain list does.
func (l *pbsList) detailed() bool { return l.Full || l.Alternate || l.Done }

// ask asks the schedd of that name; "" stands for those that the selectors name, or all.
func (l *pbsList) ask(at string, selectors []string, tasks bool) (list []*wire.JobStatus, err error) {
	req := &wire.QueryRequest{Selection: &wire.Selection{Selectors: selectors}, History: true, Tasks: tasks, Ads: l.detailed()}
	if len(selectors) == 0 {
		req.History = l.Ended
	}
	list, l.missing, err = l.queryPool(at, req)
	if err == nil && len(selectors) > 0 && len(list) == 0 {
		err = silence(l.missing)
	}
	return list, err
}

// whole lists all jobs of a schedd, or of all, and of a queue, or of all.
func (l *pbsList) whole(queue, at string) ([]*wire.JobStatus, error) {
	found, err := l.ask(at, nil, false)
	l.tellSilent(l.missing)
	if l.Ended == l.OnlyEnded { // -x wants both kinds; a job is in the queue for a moment after its end
		found = keep(found, func(s *wire.JobStatus) bool { return final(s) == l.Ended })
	}
	if queue != "" {
		found = keep(found, func(s *wire.JobStatus) bool { return pbsQueue(s) == queue })
	}
	found = backwards(found)
	if l.Subjobs && err == nil {
		found, err = l.withTasks(found)
	}
	return found, err
}

// operand lists what one of them names: a job, or as in "@n2", "fast" or "fast@n2" the jobs of a schedd or a queue.
func (l *pbsList) operand(text string) (list []*wire.JobStatus, code int, err error) {
	if text == "" || text[0] < '0' || text[0] > '9' {
		return l.destination(text)
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
	case !l.Ended && len(list) == 1 && pbsState(list[0]) == "F":
		fmt.Fprintf(l.stderr, "qstat: %s Job has finished, use -x or -H to obtain historical job information\n", text)
		return nil, pbsFinished, nil
	}
	if l.Subjobs {
		list, err = l.withTasks(list)
	}
	return list, 0, err
}

// destination lists the jobs of a queue, a schedd, or a queue at a schedd.
func (l *pbsList) destination(text string) (list []*wire.JobStatus, code int, err error) {
	queue, at, directed := strings.Cut(text, "@")
	switch {
	case l.Express:
		fmt.Fprintln(l.stderr, "qstat: Express option can only be used with job ids")
		return nil, 1, nil
	case directed && at == "", queue == "" && !directed, strings.ContainsAny(text, " \t/:"):
		fmt.Fprintf(l.stderr, "qstat: illegally formed destination: %s\n", text)
		return nil, 1, nil
	}
	if list, err = l.whole(queue, at); errors.Is(err, roost.NotFound) {
		fmt.Fprintf(l.stderr, "qstat: Unknown host %s\n", at)
		return nil, pbsUnknownJob, nil
	}
	if err == nil && queue != "" && len(list) == 0 && !l.knownQueue(queue) {
		fmt.Fprintf(l.stderr, "qstat: Unknown queue %s\n", text)
		return nil, pbsUnknownQueue, nil
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

// backwards turns newest first into oldest first, which is PBS's order.
func backwards(list []*wire.JobStatus) []*wire.JobStatus {
	slices.Reverse(list)
	return list
}
