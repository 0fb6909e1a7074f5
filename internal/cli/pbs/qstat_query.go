package pbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/qstat"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// pbsList asks for jobs as PBS names them.
type pbsList struct {
	*frame.Invocation
	qstat.CommandOptions
	operands     []string
	out          io.Writer
	exitStatus   int   // of the last operand that stands for nothing
	historyStart int64 // for who speaks Torque: jobs that ended earlier are gone, unix nanoseconds
}

// run calls f with the jobs that the command line names, or all, and reports which do not
// exist. All ids that stand side by side are asked for at once, and f is called as the
// answers come.
func (l *pbsList) run(f func(*scheddapi.JobStatus) error) (code int, err error) {
	l.exitStatus = 0
	if l.torqueAttributes() {
		if err := l.readHistoryLimit(); err != nil {
			return 0, err
		}
	}
	if len(l.operands) == 0 {
		return 0, l.listAll("", "", f)
	}
	for i, text := range l.operands {
		l.operands[i] = strings.TrimSpace(text)
	}
	for rest := l.operands; len(rest) > 0; {
		n := 0
		for n < len(rest) && rest[n] != "" && rest[n][0] >= '0' && rest[n][0] <= '9' {
			n++
		}
		if n > 0 {
			err = l.listByID(rest[:n], f)
		} else {
			n = 1
			err = l.listDestination(rest[0], f)
		}
		if err != nil {
			return 0, err
		}
		rest = rest[n:]
	}
	return l.exitStatus, nil
}

// printRefusal says on standard error why an operand stands for nothing.
func (l *pbsList) printRefusal(code int, format string, args ...any) {
	fmt.Fprintf(l.Stderr, "qstat: "+format+"\n", args...)
	l.exitStatus = code
}

// isSelected reports whether a job meets the options that choose.
func (l *pbsList) isSelected(s *scheddapi.JobStatus) bool {
	switch {
	case len(l.Users) > 0 && !slices.Contains(l.Users, s.GetOwner()):
		return false
	case l.Arrays && !(s.GetArray() && !isSubjob(s)):
		return false
	case l.States != "" && !strings.Contains(l.States, l.stateLetter(s)) &&
		!(l.OnlyEnded && strings.Contains(l.States, pbsState(s))):
		return false
	case l.ArrayElements && (s.GetArray() && !isSubjob(s) || l.isExpired(s)):
		return false
	}
	return true
}

// isSubjob reports whether a row is a task of an array.
func isSubjob(s *scheddapi.JobStatus) bool {
	return s.GetArray() && s.GetState() != "" && strings.Contains(s.GetId(), "[")
}

// needsDetails reports whether more is to be told than the plain list does.
func (l *pbsList) needsDetails() bool { return l.Full || l.Alternate || l.PercentDone }

// query is what is asked of the schedds. Of the ads of jobs come only the attributes that
// are shown.
func (l *pbsList) query(selectors ...string) *scheddapi.QueryRequest {
	req := &scheddapi.QueryRequest{
		Selection: &scheddapi.Selection{Selectors: selectors}, Table: true, History: l.Ended, Ended: l.OnlyEnded,
		Owners: l.Users, Ads: l.needsDetails(),
		Attributes: []string{roost.AttrPBS, roost.AttrWalltime, roost.AttrArrayIndex, roost.AttrMaxRunning,
			roost.AttrStartAfter},
	}
	if l.torqueAttributes() && !l.Ended && !l.ExcludeEnded {
		req.History = true
		if len(selectors) == 0 {
			req.Since = l.historyStart
		}
	}
	if l.Full {
		req.Attributes = append(req.Attributes, roost.AttrErr, roost.AttrOut, roost.AttrIwd, roost.AttrJoinOutput,
			roost.AttrGroup, roost.AttrCheckpoint, roost.AttrCheckpointEvery,
			roost.AttrRerunnable, roost.AttrReservation, roost.AttrEnvironment, roost.AttrCmd, roost.AttrArguments,
			roost.AttrSubmitArguments, roost.AttrSubmitHost)
		req.Attributes = append(req.Attributes, roost.AttrCPUTime, roost.AttrProcessCPU, roost.AttrVirtual,
			roost.AttrProcessVirtual, roost.AttrProcessMemory, roost.AttrFileSize,
			roost.AttrLimits)
	}
	return req
}

// queryServer passes on what the schedd of that name says, or those that the selectors
// name, or all. Who is silent is told of at the end.
func (l *pbsList) queryServer(at string, req *scheddapi.QueryRequest,
	f func(*scheddapi.JobStatus) error) (missing []frame.UnreachableSchedd, err error) {
	s, at, err := l.JobReader(at)
	if err != nil {
		return nil, err
	}
	begun := false
	err = l.Retry(frame.AskTimeout, func(ctx context.Context, alive func()) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := s.QueryPool(ctx, &scheddapi.PoolQuery{Query: req, At: at})
		for err == nil {
			var row *scheddapi.PoolRow
			if row, err = stream.Recv(); err == nil {
				begun = true
				missing, err = frame.PassRow(row, missing, f)
			}
		}
		if err = frame.DecodeError(err); errors.Is(err, io.EOF) {
			return nil
		}
		if begun && errors.Is(err, roost.Unavailable) { // it cannot be asked again: what it said is printed
			return frame.KindErrorf(roost.Internal, "the list is not whole: %v", err)
		}
		return err
	})
	return missing, err
}

// listAll lists all jobs of a schedd, or of all, and of a queue, or of all.
func (l *pbsList) listAll(queue, at string, f func(*scheddapi.JobStatus) error) error {
	missing, err := l.queryServer(cmp.Or(at, l.DefaultNode), l.query(), func(s *scheddapi.JobStatus) error {
		if queue != "" && pbsQueue(s) != queue || l.isExpired(s) {
			return nil
		}
		return l.listJob(s, f)
	})
	l.PrintUnreachable(missing)
	return err
}

// listJob calls f with a job, and with -t with the tasks of an array behind it.
func (l *pbsList) listJob(s *scheddapi.JobStatus, f func(*scheddapi.JobStatus) error) error {
	if l.isSelected(s) {
		if err := f(s); err != nil {
			return err
		}
	}
	if !l.Subjobs && !l.ArrayElements || !s.GetArray() || isSubjob(s) {
		return nil
	}
	req := l.query(s.GetId())
	req.Tasks, req.History = true, true
	_, err := l.queryServer("", req, func(task *scheddapi.JobStatus) error {
		if task.GetRefused() != nil || !l.isSelected(task) {
			return nil
		}
		return f(task)
	})
	return err
}

// listByID lists jobs by their ids.
func (l *pbsList) listByID(texts []string, f func(*scheddapi.JobStatus) error) error {
	stated := map[string]string{}
	var words []string
	for _, text := range texts {
		id, ok := pbsframe.ParseID(text)
		if !ok {
			l.printRefusal(1, "illegally formed job identifier: %s", qstat.VisibleText(text))
			continue
		}
		if at := pbsframe.OperandHost(text); at != "" {
			id += "." + at
		} else if frame.IDHost(id) == "" && l.DefaultNode != "" {
			id += "." + l.DefaultNode
		}
		words = append(words, id)
		stated[id] = text
	}
	if len(words) == 0 {
		return nil
	}
	missing, err := l.queryServer("", l.query(words...), func(s *scheddapi.JobStatus) error {
		if r := s.GetRefused(); r != nil {
			return l.refusalText(stated[r.GetSelector()], r)
		}
		if l.isExpired(s) {
			l.printRefusal(pbsframe.UnknownJob, "%s %s", pbsframe.UnknownJobText(l.Invocation),
				pbsframe.IDText(s.GetId(), s.GetArray()))
			return nil
		}
		if !l.Ended && !l.torqueAttributes() && pbsState(s) == "F" {
			l.printRefusal(pbsframe.FinishedJob,
				"%s Job has finished, use -x or -H to obtain historical job information",
				pbsframe.IDText(s.GetId(), s.GetArray()))
			return nil
		}
		return l.listJob(s, f)
	})
	for _, m := range missing {
		l.printRefusal(pbsframe.SystemError, "%s %s", m.Node, m.Reason)
	}
	return err
}

// refusalText says why an id stands for nothing.
func (l *pbsList) refusalText(text string, r *scheddapi.Refused) error {
	text = pbsframe.FullOperand(l.Invocation, text)
	switch kind := roost.ErrorKind(r.GetKind()); kind {
	case roost.NotFound:
		l.printRefusal(pbsframe.UnknownJob, "%s %s", pbsframe.UnknownJobText(l.Invocation), text)
	case roost.Finished:
		l.printRefusal(pbsframe.FinishedJob, "%s Job has finished, use -x or -H to obtain historical job information",
			text)
	default:
		l.printRefusal(pbsframe.ExitStatus(kind), "%s", jobs.WithSubject(text, document.PrintableText(r.GetText())))
	}
	return nil
}

// listDestination lists the jobs of a queue, a schedd, or a queue at a schedd.
func (l *pbsList) listDestination(text string, f func(*scheddapi.JobStatus) error) error {
	queue, at, directed := strings.Cut(text, "@")
	switch {
	case l.JobIDsOnly:
		l.printRefusal(1, "Express option can only be used with job ids")
		return nil
	case directed && at == "", queue == "" && !directed, strings.ContainsAny(text, " \t/:"):
		l.printRefusal(1, "illegally formed destination: %s", qstat.VisibleText(text))
		return nil
	}
	found := false
	err := l.listAll(queue, at, func(s *scheddapi.JobStatus) error { found = true; return f(s) })
	if errors.Is(err, roost.NotFound) {
		l.exitStatus = l.unreachable(at, err)
		return nil
	}
	if err == nil && queue != "" && !found && !l.mayBeQueue(queue) {
		l.printRefusal(pbsframe.UnknownQueue, "Unknown queue %s", text)
	}
	return err
}
