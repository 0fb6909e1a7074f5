package pbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/pbs/pbsframe"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/pbs/qalter"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

func qalterCommand() *frame.Command {
	return &frame.Command{
		Name: "qalter", Group: frame.GroupPBS, Summary: "change what jobs ask for", Synopsis: "[options] JOB…",
		RawArgs:     true,
		MaxOperands: -1, Run: runQalter,
		Description: "Changes jobs, or whole arrays (123[]), that wait: what the options name, and nothing else. Of " +
			"a job that runs only a few things can be changed. A job is changed in all that is asked for or " +
			"not at all.",
		Examples: []frame.Example{
			{Line: "qalter -l walltime=2:00:00 123", Description: "give a job two hours"},
			{Line: "qalter -l select=1:ncpus=8:mem=16gb -N big 123", Description: "ask for more, under another name"},
			{Line: "qalter -W depend=afterok:122 123 124", Description: "let two jobs wait for another"},
			{Line: "qalter -l walltime= 123", Description: "take back what was said"},
		},
		Flags: qalterFlags(),
	}
}

// qalterFlags are the options of qalter. What they mean is in internal/pbs/qsub.
func qalterFlags() []ucli.Flag {
	return []ucli.Flag{
		pbsframe.ShortFlag("A", "ACCOUNT", "charge this accounting group"),
		pbsframe.ShortFlag("a", "TIME", "start not before [[[[CC]YY]MM]DD]hhmm[.SS]; a time that has passed: at once"),
		pbsframe.ShortFlag("c", "WHEN",
			"when to checkpoint: n (never), s (when it has to leave its machine), c or w (from "+
				"time to time), c=MINUTES or w=MINUTES"),
		pbsframe.ShortFlag("e", "PATH", "where standard error goes: [HOST:]FILE, or a directory"),
		pbsframe.ShortFlag("h", "KIND", "hold it (u, o or s), or release it (n)"),
		pbsframe.ShortFlag("j", "oe|eo|n", "join standard output and standard error, in the file of the first letter"),
		pbsframe.ShortFlag("k", "o|e|oe|d|n", "keep output in the home directory, or (d) write it in place"),
		pbsframe.ShortFlag("l", "RESOURCE=VALUE,…", "ask for these resources instead; without a value: not any more"),
		pbsframe.ShortFlag("M", "USERS", "whom mail is for"),
		pbsframe.ShortFlag("m", "POINTS", "when mail is sent"),
		pbsframe.ShortFlag("N", "NAME", "the name of the job; its output files keep theirs"),
		pbsframe.ShortFlag("o", "PATH", "where standard output goes: [HOST:]FILE, or a directory"),
		pbsframe.ShortFlag("P", "PROJECT", "the project; without an account it is the accounting group"),
		pbsframe.ShortFlag("p", "PRIORITY", "order among your own jobs, from -1024 to 1023"),
		pbsframe.ShortFlag("R", "o|e|oe", "which output files are removed after success"),
		pbsframe.ShortFlag("r", "y|n", "whether the job may be run again"),
		pbsframe.ShortFlag("S", "SHELL", "the shell that runs the script"),
		pbsframe.ShortFlag("u", "USER", "taken if it is the owner"),
		pbsframe.ShortFlag("v", "NAME[=VALUE],…", "set more variables of the job's environment"),
		pbsframe.ShortFlag("W", "KEY=VALUE,…", "more attributes: depend=, umask=, max_run_subjobs=, stagein=, …"),
	}
}

func runQalter(c *frame.Invocation) error {
	if pbsframe.AnswersVersion(c) {
		return nil
	}
	caller, err := pbsframe.NewCaller(c)
	if err != nil {
		return pbsframe.Fail(c, err)
	}
	a, err := qalter.ParseQalter(c.Args, caller)
	var refused *qsub.RefusalError
	if errors.As(err, &refused) {
		fmt.Fprintln(c.Stderr, refused.Text)
		return frame.ExitError(refused.ExitStatus)
	}
	return eachOperand(c, a.Operands, func(text, id string, s *scheddapi.ScheddClient) int {
		return alterJob(c, a, text, id, s)
	})
}

// maxAlterRetries is how often an alteration is thought out anew because somebody else
// has altered the job meanwhile.
const maxAlterRetries = 10

// alterJob changes one job, and returns the exit status for it.
func alterJob(c *frame.Invocation, a *qalter.JobAlteration, text, id string, s *scheddapi.ScheddClient) int {
	for range maxAlterRetries {
		m, code := parseAlteration(c, a, text, id, s)
		if code != 0 {
			return code
		}
		reply, err := actAtSchedd(c, s, &scheddapi.ActRequest{Verb: scheddapi.ActRequest_ALTER, Alteration: m}, id)
		if err == nil && len(reply.GetResults()) == 1 &&
			roost.ErrorKind(reply.GetResults()[0].GetKind()) == roost.Stale {
			continue
		}
		return printOperandResult(c, text, reply, err, false)
	}
	fmt.Fprintf(c.Stderr, "%s: Request invalid for state of job %s: somebody else alters it all the time\n",
		c.Command.Name,
		pbsframe.FullOperand(c, text))
	return pbsframe.BadState
}

// parseAlteration is what is to be asked of the schedd for one job, as it is now. Of a
// job that cannot be looked at, or of a part of one, the schedd says what is wrong.
func parseAlteration(c *frame.Invocation, a *qalter.JobAlteration, text, id string,
	s *scheddapi.ScheddClient) (*scheddapi.Alteration, int) {
	nothing := &scheddapi.Alteration{Changes: "[]", Basis: -1}
	if strings.Contains(id, "[") {
		return nothing, 0
	}
	st, err := jobStatus(c, s, id)
	if err != nil {
		return nil, printOperandError(c, text, err, false)
	}
	if st == nil || document.IsFinal(st) {
		return nothing, 0
	}
	ad, err := classad.Parse(st.GetAd())
	if err != nil {
		return nil, printOperandError(c, text, fmt.Errorf("job %s: its ad: %w", id, err), false)
	}
	_, host, _ := strings.Cut(st.GetId(), ".")
	change, err := a.ChangeFor(qalter.CurrentJob{
		Ad: ad, Owner: st.GetOwner(), Host: host, Tasks: int(st.GetTasks()), Array: st.GetArray(),
		Runs: !st.GetArray() && hasStarted(st),
	}, pbsframe.IDText(st.GetId(), st.GetArray()))
	var refused *qsub.RefusalError
	switch {
	case err != nil && st.GetDiscreet():
		return nothing, 0 // it is somebody else's
	case errors.As(err, &refused):
		fmt.Fprintln(c.Stderr, refused.Text)
		return nil, refused.ExitStatus
	}
	noteCommented(change.Ad, ad, st)
	basis, _ := ad.Int(roost.AttrAlterations)
	m := &scheddapi.Alteration{Changes: change.Ad.String(), Count: uint32(change.Count), Basis: basis,
		Hold: change.HoldAction}
	for _, col := range change.Columns {
		m.Columns = append(m.Columns, &scheddapi.Column{Name: col.Name, Values: col.Values})
	}
	return m, 0
}

// commentedAttempt names the attribute with the attempt that ran when a comment was last
// written.
const commentedAttempt = "commented_attempt"

// noteCommented records which attempt ran when a comment was written.
func noteCommented(changes, before *classad.Ad, s *scheddapi.JobStatus) {
	record, ok := changes.Sub(roost.AttrPBS)
	if !ok || !hasStarted(s) {
		return
	}
	old := ""
	if r, ok := before.Sub(roost.AttrPBS); ok {
		old, _ = r.Str("comment")
	}
	if comment, _ := record.Str("comment"); comment != "" && comment != old {
		record = record.Copy()
		record.SetString(commentedAttempt, fmt.Sprint(s.GetAttempt()))
		changes.SetAd(roost.AttrPBS, record)
	}
}

// hasStarted reports whether a task of a job has a machine.
func hasStarted(s *scheddapi.JobStatus) bool {
	return slices.ContainsFunc([]roost.TaskState{roost.Starting, roost.Running, roost.Suspended},
		func(state roost.TaskState) bool {
			return s.GetCounts()[state.String()] > 0
		})
}

// jobStatus asks for one job with its ad; nil when there is none.
func jobStatus(c *frame.Invocation, s *scheddapi.ScheddClient, id string) (found *scheddapi.JobStatus, err error) {
	err = c.Retry(frame.AskTimeout, func(ctx context.Context, _ func()) error {
		stream, err := s.Query(ctx, &scheddapi.QueryRequest{Selection: &scheddapi.Selection{Selectors: []string{id}},
			Ads:     true,
			History: true})
		if err != nil {
			return frame.DecodeError(err)
		}
		rows, err := frame.DrainStream(stream, 0)
		if err == nil && len(rows) == 1 {
			found = rows[0]
		}
		return frame.DecodeError(err)
	})
	if errors.Is(err, roost.NotFound) {
		return nil, nil
	}
	return found, err
}

// printInvalidAlteration prints why a change of a job is invalid, as qsub would, and
// returns its exit status. It returns 0 where the job itself does not allow it: then the
// schedd's message begins with the id.
func printInvalidAlteration(c *frame.Invocation, r *scheddapi.ActReply_Result) int {
	words := strings.Join(strings.Fields(r.GetError()), " ")
	if words == "" || words[0] >= '0' && words[0] <= '9' {
		return 0
	}
	refused, ok := qsub.RefusalFor(roost.ErrorKind(r.GetKind()), words)
	if !ok {
		return 0
	}
	fmt.Fprintf(c.Stderr, "%s: %s\n", c.Command.Name, strings.TrimPrefix(refused.Text, "qsub: "))
	return refused.ExitStatus
}
