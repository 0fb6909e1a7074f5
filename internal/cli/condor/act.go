package condor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/condor"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// jobAction is one of condor_rm, condor_hold and condor_release in HTCondor's words.
type jobAction struct {
	verb     scheddapi.ActRequest_Verb
	infinite string // "remove"
	one      string // what is said of one job
	several  string // what is said of several
	notSo    string // what is said of one job that the action does not change
}

func removeCommand() *frame.Command {
	return actCommand("condor_rm", "remove jobs",
		"Removes jobs as condor_rm of HTCondor does. What runs gets SIGTERM, the notice of its job, and then SIGKILL; "+
			"with -forcex it is killed at once.",
		jobAction{scheddapi.ActRequest_REMOVE, "remove", "marked for removal",
			"have been marked for removal", "already marked for removal"}, "[-forcex] ")
}

func holdCommand() *frame.Command {
	return actCommand("condor_hold", "hold jobs",
		"Keeps jobs from starting until condor_release lets them go on. What runs is stopped.",
		jobAction{scheddapi.ActRequest_HOLD, "hold", "held", "have been held", "already held"}, "")
}

func releaseCommand() *frame.Command {
	return actCommand("condor_release", "release held jobs",
		"Lets held jobs go on. What an administrator holds of yours, only an administrator releases.",
		jobAction{scheddapi.ActRequest_RELEASE, "release", "released", "have been released",
			"not held to be released"}, "")
}

func actCommand(name, summary, description string, a jobAction, force string) *frame.Command {
	return &frame.Command{
		Name: name, Group: frame.GroupCondor, Summary: summary, RawArgs: true, MaxOperands: -1,
		Synopsis: force + "[-reason TEXT] CLUSTER[.PROC]… | USER… | -constraint EXPR | -all",
		Run:      func(c *frame.Invocation) error { return a.run(c) }, Description: description,
		Examples: []frame.Example{
			{Line: name + " 12", Description: "all tasks of a job"},
			{Line: name + " 12.3 -reason 'wrong input'", Description: "one task, and why"},
			{Line: name + " -constraint 'JobStatus == 5'", Description: "those of your jobs that meet a condition"},
		},
	}
}

func (a jobAction) run(c *frame.Invocation) error {
	l, answered, err := parseArguments(c, []condor.OptionWord{{Word: "all", Least: 1},
		{Word: "constraint", Least: 1, Values: 1},
		{Word: "forcex", Least: 1}, {Word: "reason", Least: 1, Values: 1}, {Word: "subcode", Least: 3, Values: 1},
		{Word: "long", Least: 1}, {Word: "totals", Least: 1}})
	if err != nil || answered {
		return refuseUnless(c, err)
	}
	s, err := selectionOf(c, l)
	switch {
	case err != nil:
		return refuse(c, err)
	case l.Has("forcex") && a.verb != scheddapi.ActRequest_REMOVE:
		return refuse(c, errors.New("-forcex is an option of condor_rm"))
	case len(l.Operands) == 0 && !l.Has("all") && !l.Has("constraint"):
		return refuse(c, errors.New("no jobs are named: name ids, -constraint or -all"))
	case len(l.Operands) > 0 && (l.Has("all") || l.Has("constraint")):
		return refuse(c, errors.New("ids do not go together with -constraint and -all"))
	}
	req := &scheddapi.ActRequest{Verb: a.verb, Reason: l.Last("reason"), Force: l.Has("forcex")}
	if req.Reason == "" && a.verb != scheddapi.ActRequest_RELEASE {
		req.Reason = "via " + c.Command.Name
	}
	code := 0
	for _, id := range s.ids {
		code = max(code, a.actOnID(c, req, id))
	}
	for _, owner := range s.owners {
		of := jobSelection{owners: []string{owner}}
		code = max(code, a.actOnMatching(c, req, of, "User "+owner+"'s job(s) "+a.several+"."))
	}
	s.isMine = true
	switch {
	case l.Has("constraint"):
		code = max(code, a.actOnMatching(c, req, s, fmt.Sprintf("Jobs matching constraint (%s) %s",
			l.Last("constraint"), a.several)))
	case l.Has("all"):
		code = max(code, a.actOnMatching(c, req, s, "All jobs "+a.several))
	}
	if code != 0 {
		return frame.ExitError(code)
	}
	return nil
}

// act asks the schedd to act on jobs.
func act(c *frame.Invocation, req *scheddapi.ActRequest, ids []string) ([]*scheddapi.ActReply_Result, error) {
	var reply *scheddapi.ActReply
	one := &scheddapi.ActRequest{Verb: req.GetVerb(), Reason: req.GetReason(), Force: req.GetForce(),
		Selection: &scheddapi.Selection{Selectors: ids}}
	err := c.CallSchedd(frame.SubmitTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) (err error) {
		ctx, cancel := context.WithTimeout(ctx, frame.SubmitTimeout+30*time.Second)
		defer cancel()
		reply, err = s.Act(ctx, one)
		return frame.DecodeError(err)
	})
	return reply.GetResults(), err
}

// actOnID acts on what one id names, says what became of it, and returns the exit status.
func (a jobAction) actOnID(c *frame.Invocation, req *scheddapi.ActRequest, id condor.JobID) int {
	selector, single, err := selectorOf(c, id)
	var results []*scheddapi.ActReply_Result
	if err == nil {
		results, err = act(c, req, []string{selector})
	}
	changed := 0
	for _, r := range results {
		if changed += int(r.GetTasks()); err == nil && r.GetError() != "" {
			err = &frame.KindError{Kind: roost.ErrorKind(r.GetKind()), Text: r.GetError()}
		}
	}
	whole := id.Proc == condor.WholeCluster
	switch {
	case err == nil && changed == 0 && whole:
		fmt.Fprintf(c.Stderr, "Couldn't find/%s all jobs in cluster %v\n", a.infinite, id)
		return failure
	case err == nil && changed == 0:
		fmt.Fprintf(c.Stderr, "Job %v %s\n", id, a.notSo)
		return failure
	case err == nil && whole:
		fmt.Fprintf(c.Stdout, "All jobs in cluster %v %s\n", id, a.several)
		return 0
	case err == nil:
		fmt.Fprintf(c.Stdout, "Job %v %s\n", id, a.one)
		return 0
	case whole && !single && errors.Is(err, roost.NotFound) || whole && isGone(err):
		fmt.Fprintf(c.Stderr, "Couldn't find/%s all jobs in cluster %v\n", a.infinite, id)
	case isGone(err):
		fmt.Fprintf(c.Stderr, "Job %v not found\n", id)
	case errors.Is(err, roost.PermissionDenied), errors.Is(err, roost.Unauthenticated):
		fmt.Fprintf(c.Stderr, "Permission denied to %s job %v\n", a.infinite, id)
	default:
		fmt.Fprintf(c.Stderr, "Job %v: %s\n", id, document.PrintableText(frame.ErrorText(err)))
	}
	return failure
}

// isGone reports whether a job does not exist, or has ended.
func isGone(err error) bool {
	err = frame.DecodeError(err)
	return errors.Is(err, roost.NotFound) || errors.Is(err, roost.Finished)
}

// selectorOf returns how the schedd names what an id names. A job that is no array has
// one task, which is proc 0.
func selectorOf(c *frame.Invocation, id condor.JobID) (selector string, isSingle bool, err error) {
	cluster := condor.JobID{Cluster: id.Cluster, Proc: condor.WholeCluster}.String()
	if id.Proc == condor.WholeCluster {
		return cluster, false, nil
	}
	found, err := c.QueryJobs(&scheddapi.QueryRequest{Selection: &scheddapi.Selection{Selectors: []string{cluster}}})
	switch {
	case err != nil:
		return "", false, err
	case len(found) == 1 && found[0].GetArray():
		return fmt.Sprintf("%s[%d]", cluster, id.Proc), false, nil
	case len(found) == 1 && id.Proc == 0:
		return cluster, true, nil
	}
	return "", false, roost.NotFound
}

// actOnMatching acts on all jobs that are chosen and can be acted on, says so, and
// returns the exit status.
func (a jobAction) actOnMatching(c *frame.Invocation, req *scheddapi.ActRequest, s jobSelection, text string) int {
	found, own, err := queryTasks(c, s, false)
	if err != nil {
		fail(c, err)
		return failure
	}
	now := c.Now()
	chosen := map[uint64][]*scheddapi.JobStatus{}
	var clusters []uint64
	all := map[uint64]int{}
	for _, status := range found {
		cluster := condor.IDOf(status).Cluster
		all[cluster]++
		ad := own.JobAd(status, now)
		if !s.includes(ad) || !a.appliesTo(ad) {
			continue
		}
		if chosen[cluster] == nil {
			clusters = append(clusters, cluster)
		}
		chosen[cluster] = append(chosen[cluster], status)
	}
	var ids []string
	for _, cluster := range clusters {
		if tasks := chosen[cluster]; len(tasks) == all[cluster] {
			ids = append(ids, condor.JobID{Cluster: cluster, Proc: condor.WholeCluster}.String())
		} else {
			for _, status := range tasks {
				ids = append(ids, status.GetId())
			}
		}
	}
	return a.actOnIDs(c, req, ids, text)
}

// actOnIDs acts on jobs that were just found. Those that have ended since are no mistake.
func (a jobAction) actOnIDs(c *frame.Invocation, req *scheddapi.ActRequest, ids []string, text string) int {
	code, done := 0, 0
	for batch := range slices.Chunk(ids, maxIDsOfCall) {
		results, err := act(c, req, batch)
		if err != nil {
			fail(c, err)
			return failure
		}
		for _, r := range results {
			kind := roost.ErrorKind(r.GetKind())
			switch {
			case r.GetError() == "":
				done++
			case !isGone(kind):
				fmt.Fprintf(c.Stderr, "%s: %s\n", r.GetId(), document.PrintableText(r.GetError()))
				code = failure
			}
		}
	}
	if done == 0 && code == 0 {
		fmt.Fprintf(c.Stderr, "There are no jobs to %s: none in the queue meets the condition\n", a.infinite)
		return failure
	}
	if code == 0 {
		fmt.Fprintln(c.Stdout, document.PrintableText(text))
	}
	return code
}

// maxIDsOfCall bounds how many ids one call to the schedd has.
const maxIDsOfCall = 10_000

// appliesTo reports whether the action changes a job in this state.
func (a jobAction) appliesTo(ad *classad.Ad) bool {
	state, _ := ad.Int("JobStatus")
	switch held := condor.StateNumber(state) == condor.Held; a.verb {
	case scheddapi.ActRequest_HOLD:
		return !held && !hasEnded(ad)
	case scheddapi.ActRequest_RELEASE:
		return held
	}
	return !hasEnded(ad)
}
