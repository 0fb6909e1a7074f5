package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/pbs/qalter"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire"
)

func qalterCommand() *command {
	return &command{
		name: "qalter", group: groupPBS, summary: "change what jobs ask for", synopsis: "[options] JOB…", rawArgs: true,
		maxOperands: -1, run: runQalter,
		description: "Changes jobs, or whole arrays (123[]), that wait: what the options name, and nothing else. Of " +
			"a job that runs only a few things can be changed. A job is changed in all that is asked for or " +
			"not at all.",
		examples: []commandExample{
			{"qalter -l walltime=2:00:00 123", "give a job two hours"},
			{"qalter -l select=1:ncpus=8:mem=16gb -N big 123", "ask for more, under another name"},
			{"qalter -W depend=afterok:122 123 124", "let two jobs wait for another"},
			{"qalter -l walltime= 123", "take back what was said"},
		},
		flags: qalterFlags(),
	}
}

// qalterFlags are the options of qalter. What they mean is in internal/pbs/qsub.
func qalterFlags() []ucli.Flag {
	return []ucli.Flag{
		shortFlag("A", "ACCOUNT", "charge this accounting group"),
		shortFlag("a", "TIME", "start not before [[[[CC]YY]MM]DD]hhmm[.SS]; a time that has passed: at once"),
		shortFlag("c", "WHEN", "when to checkpoint: n (never), s (when it has to leave its machine), c or w (from "+
			"time to time), c=MINUTES or w=MINUTES"),
		shortFlag("e", "PATH", "where standard error goes: [HOST:]FILE, or a directory"),
		shortFlag("h", "KIND", "hold it (u, o or s), or release it (n)"),
		shortFlag("j", "oe|eo|n", "join standard output and standard error, in the file of the first letter"),
		shortFlag("k", "o|e|oe|d|n", "keep output in the home directory, or (d) write it in place"),
		shortFlag("l", "RESOURCE=VALUE,…", "ask for these resources instead; without a value: not any more"),
		shortFlag("M", "USERS", "whom mail is for"),
		shortFlag("m", "POINTS", "when mail is sent"),
		shortFlag("N", "NAME", "the name of the job; its output files keep theirs"),
		shortFlag("o", "PATH", "where standard output goes: [HOST:]FILE, or a directory"),
		shortFlag("P", "PROJECT", "the project; without an account it is the accounting group"),
		shortFlag("p", "PRIORITY", "order among your own jobs, from -1024 to 1023"),
		shortFlag("R", "o|e|oe", "which output files are removed after success"),
		shortFlag("r", "y|n", "whether the job may be run again"),
		shortFlag("S", "SHELL", "the shell that runs the script"),
		shortFlag("u", "USER", "taken if it is the owner"),
		shortFlag("v", "NAME[=VALUE],…", "set more variables of the job's environment"),
		shortFlag("W", "KEY=VALUE,…", "more attributes: depend=, umask=, max_run_subjobs=, stagein=, …"),
	}
}

func runQalter(c *invocation) error {
	if c.answersVersion() {
		return nil
	}
	caller, err := c.pbsCaller()
	if err != nil {
		return c.pbsFail(err)
	}
	a, err := qalter.ParseQalter(c.args, caller)
	var refused *qsub.RefusalError
	if errors.As(err, &refused) {
		fmt.Fprintln(c.stderr, refused.Text)
		return exitError(refused.ExitStatus)
	}
	return c.eachOperand(a.Operands, func(text, id string, s wire.ScheddClient) int {
		return c.alterJob(a, text, id, s)
	})
}

// maxAlterRetries is how often an alteration is thought out anew because somebody else
// has altered the job meanwhile.
const maxAlterRetries = 10

// alterJob changes one job, and returns the exit status for it.
func (c *invocation) alterJob(a *qalter.JobAlteration, text, id string, s wire.ScheddClient) int {
	for range maxAlterRetries {
		m, code := c.parseAlteration(a, text, id, s)
		if code != 0 {
			return code
		}
		reply, err := c.actAtSchedd(s, &wire.ActRequest{Verb: wire.ActRequest_ALTER, Alteration: m}, id)
		if err == nil && len(reply.GetResults()) == 1 &&
			roost.ErrorKind(reply.GetResults()[0].GetKind()) == roost.Stale {
			continue
		}
		return c.printOperandResult(text, reply, err, false)
	}
	fmt.Fprintf(c.stderr, "%s: Request invalid for state of job %s: somebody else alters it all the time\n", c.cmd.name,
		c.fullOperand(text))
	return pbsBadState
}

// parseAlteration is what is to be asked of the schedd for one job, as it is now. Of a
// job that cannot be looked at, or of a part of one, the schedd says what is wrong.
func (c *invocation) parseAlteration(a *qalter.JobAlteration, text, id string,
	s wire.ScheddClient) (*wire.Alteration, int) {
	nothing := &wire.Alteration{Changes: "[]", Basis: -1}
	if strings.Contains(id, "[") {
		return nothing, 0
	}
	st, err := c.jobStatus(s, id)
	if err != nil {
		return nil, c.printOperandError(text, err, false)
	}
	if st == nil || isFinal(st) {
		return nothing, 0
	}
	ad, err := classad.Parse(st.GetAd())
	if err != nil {
		return nil, c.printOperandError(text, fmt.Errorf("job %s: its ad: %w", id, err), false)
	}
	_, host, _ := strings.Cut(st.GetId(), ".")
	change, err := a.ChangeFor(qalter.CurrentJob{
		Ad: ad, Owner: st.GetOwner(), Host: host, Tasks: int(st.GetTasks()), Array: st.GetArray(),
		Runs: !st.GetArray() && hasStarted(st),
	}, pbsName(st.GetId(), st.GetArray()))
	var refused *qsub.RefusalError
	switch {
	case err != nil && st.GetDiscreet():
		return nothing, 0 // it is somebody else's
	case errors.As(err, &refused):
		fmt.Fprintln(c.stderr, refused.Text)
		return nil, refused.ExitStatus
	}
	noteCommented(change.Ad, ad, st)
	basis, _ := ad.Int(roost.AttrAlterations)
	m := &wire.Alteration{Changes: change.Ad.String(), Count: uint32(change.Count), Basis: basis,
		Hold: change.HoldAction}
	for _, col := range change.Columns {
		m.Columns = append(m.Columns, &wire.Column{Name: col.Name, Values: col.Values})
	}
	return m, 0
}

// commentedAttempt is the word of a job's record for the attempt that ran when somebody
// last wrote a comment on it.
const commentedAttempt = "commented_attempt"

// noteCommented notes which attempt ran when a comment was written.
func noteCommented(changes, before *classad.Ad, s *wire.JobStatus) {
	record, ok := changes.Sub(roost.AttrPBS)
	if !ok || !hasStarted(s) {
		return
	}
	old := ""
	if r, ok := before.Sub(roost.AttrPBS); ok {
		old, _ = r.Str("comment")
	}
	if said, _ := record.Str("comment"); said != "" && said != old {
		record = record.Copy()
		record.SetString(commentedAttempt, fmt.Sprint(s.GetAttempt()))
		changes.SetAd(roost.AttrPBS, record)
	}
}

// hasStarted reports whether a task of a job has a machine.
func hasStarted(s *wire.JobStatus) bool {
	return slices.ContainsFunc([]roost.TaskState{roost.Starting, roost.Running, roost.Suspended},
		func(state roost.TaskState) bool {
			return s.GetCounts()[state.String()] > 0
		})
}

// jobStatus asks for one job with its ad; nil when there is none.
func (c *invocation) jobStatus(s wire.ScheddClient, id string) (found *wire.JobStatus, err error) {
	err = c.retry(askTimeout, func(ctx context.Context, _ func()) error {
		stream, err := s.Query(ctx, &wire.QueryRequest{Selection: &wire.Selection{Selectors: []string{id}}, Ads: true,
			History: true})
		if err != nil {
			return decodeError(err)
		}
		rows, err := drainStream(stream, 0)
		if err == nil && len(rows) == 1 {
			found = rows[0]
		}
		return decodeError(err)
	})
	if errors.Is(err, roost.NotFound) {
		return nil, nil
	}
	return found, err
}

// printInvalidAlteration tells why a job cannot become what it was to become, as qsub
// would, and returns the exit status for it; 0 where it is the job itself that is wrong:
// then what the schedd says begins with its id.
func (c *invocation) printInvalidAlteration(r *wire.ActReply_Result) int {
	words := strings.Join(strings.Fields(r.GetError()), " ")
	if words == "" || words[0] >= '0' && words[0] <= '9' {
		return 0
	}
	refused, ok := qsub.RefusalFor(roost.ErrorKind(r.GetKind()), words)
	if !ok {
		return 0
	}
	fmt.Fprintf(c.stderr, "%s: %s\n", c.cmd.name, strings.TrimPrefix(refused.Text, "qsub: "))
	return refused.ExitStatus
}
