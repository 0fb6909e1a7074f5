package jobs

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// maxEvents bounds how much of a long life is shown unless more is asked for.
const maxEvents = 50

// ShowCommand returns roost show: show everything about a job.
func ShowCommand() *frame.Command {
	return &frame.Command{
		Name: "show", Group: frame.GroupSee, Summary: "show everything about a job", Synopsis: "JOB", MinOperands: 1,
		MaxOperands: 1, OperandName: "a job", Run: showJob,
		Description: "Shows the record of a job or of one task: what it asks for, how it stands, its attempts, " +
			"and what has happened to it so far. " + selectors,
		Examples: []frame.Example{
			{Line: "roost show last", Description: "your newest job"},
			{Line: "roost show --ad 123[7]", Description: "a task, with the job's whole ad"},
		},
		Flags: []ucli.Flag{
			&ucli.BoolFlag{Name: "ad", Usage: "also print the ad: every attribute"},
			&ucli.IntFlag{Name: "events", Usage: "show at most `N` events; 0 for all", Value: maxEvents},
			frame.JSONFlag(),
		},
	}
}

// FindJob finds the single job or task that a selector names.
func FindJob(c *frame.Invocation, selector string, req *scheddapi.QueryRequest) (*scheddapi.JobStatus, error) {
	task := frame.NamesOnlyTasks([]string{selector})
	req.Selection, req.History, req.Tasks, req.Limit = &scheddapi.Selection{Selectors: []string{selector}}, true, task,
		2
	found, missing, err := c.QueryPool("", req)
	if err == nil && len(found) > 1 && selector[0] == '@' {
		found, err = unfinished(c, req, found)
	}
	if err == nil && len(found) == 0 {
		err = frame.UnreachableError(missing)
	}
	if err != nil {
		return nil, err
	}
	switch {
	case len(found) == 0:
		return nil, frame.KindErrorf(roost.NotFound, "%s: there is no such job", selector)
	case len(found) > 1:
		return nil, frame.WithHint(frame.UsageErrorf("%s names several jobs, and one is wanted", selector),
			"list them with: roost jobs '"+selector+"'")
	}
	return found[0], nil
}

// newestEnded finds the newest job of a name of which all have ended. It says on standard
// error which it is. Without one it returns nil.
func newestEnded(c *frame.Invocation, selector string) (newest *scheddapi.JobStatus, err error) {
	all, _, err := c.QueryPool("", &scheddapi.QueryRequest{History: true,
		Selection: &scheddapi.Selection{Selectors: []string{selector}}})
	if err != nil || slices.ContainsFunc(all, func(s *scheddapi.JobStatus) bool { return !document.IsFinal(s) }) {
		return nil, err
	}
	for _, s := range all {
		if newest == nil || s.GetSubmitted() > newest.GetSubmitted() {
			newest = s
		}
	}
	if len(all) > 1 {
		fmt.Fprintf(c.Stderr, "! %d jobs of that name have ended; this is the newest, %s\n", len(all), newest.GetId())
	}
	return newest, nil
}

// unfinished finds the only job of several of a name that has not ended, or returns all.
func unfinished(c *frame.Invocation, req *scheddapi.QueryRequest, all []*scheddapi.JobStatus) (
	[]*scheddapi.JobStatus, error) {
	req.History, req.Limit = false, 0
	found, _, err := c.QueryPool("", req)
	found = slices.DeleteFunc(found, document.IsFinal)
	if err != nil || len(found) != 1 {
		return all, err
	}
	return found, nil
}

// ResolveSelector turns a selector such as "last" into an id; ids stay as they are.
func ResolveSelector(c *frame.Invocation, selector string) (string, error) {
	if selector != "" && selector[0] >= '0' && selector[0] <= '9' {
		return selector, nil
	}
	s, err := FindJob(c, selector, &scheddapi.QueryRequest{})
	return s.GetId(), err
}

func showJob(c *frame.Invocation) error {
	s, err := FindJob(c, c.Args[0], &scheddapi.QueryRequest{Ads: true})
	if err != nil {
		return err
	}
	several := s.GetTasks() > 1 || s.GetArray()
	limit, read := c.CountFlag("events"), c.CountFlag("events")
	if !several || s.GetState() != "" {
		read = 0 // the timeline of a task is made of all its events
	}
	events, more, err := Events(c, s.GetId(), read)
	if err != nil {
		return err
	}
	var timeline document.CheckpointTimeline
	var chain document.PreemptionChain
	if read == 0 {
		timeline = document.CheckpointTimelineOf(s, events, c.Now())
		chain = document.PreemptionChainOf(&timeline, events)
		if limit > 0 && len(events) > limit {
			events, more = events[:limit], true
		}
	}
	if c.WantsJSON() {
		return showJSON(c, s, events, &timeline, &chain)
	}
	showRecord(c, s, &timeline)
	if err := showServiceTasks(c, s); err != nil {
		return err
	}
	if list := attempts(events); len(list) > 0 {
		showAttempts(c, list, several)
	}
	showPreemptions(c, &chain)
	showEvents(c, events, several, more)
	if c.Flag("ad") {
		fmt.Fprintf(c.Stdout, "\n%s\n%s\n", c.OutScreen.ColourText(frame.Bold, "Ad"),
			strings.TrimRight(adLines(s.GetAd()), "\n"))
	}
	return nil
}

// Events reads what happened to a job, and reports whether there is more than limit.
func Events(c *frame.Invocation, id string, limit int) (events []*scheddapi.JobEvent, more bool, err error) {
	err = c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := s.Events(ctx, &scheddapi.EventsRequest{Id: id})
		if err != nil {
			return err
		}
		ask := limit
		if limit > 0 {
			ask++
		}
		events, err = frame.DrainStream(stream, ask)
		return err
	})
	if limit > 0 && len(events) > limit {
		return events[:limit], true, err
	}
	return events, false, err
}

func showJSON(c *frame.Invocation, s *scheddapi.JobStatus, events []*scheddapi.JobEvent,
	t *document.CheckpointTimeline, chain *document.PreemptionChain) error {
	records := make([]document.Event, len(events))
	for i, e := range events {
		records[i] = document.EventOf(e)
	}
	d := frame.JSONDocument{"job": document.JobOf(s, s.GetState() != ""), "events": records}
	if len(t.Images) > 0 {
		d["checkpoints"] = t
	}
	if !chain.IsEmpty() {
		d["preemption"] = chain
	}
	if p := progressOf(c, s); p != nil {
		d["progress"] = p
	}
	if schedule := document.ScheduleOf(s.GetAd(), s.GetOwner(), c.Now()); schedule != nil {
		d["schedule"] = schedule
	}
	if logs := document.ServiceLogsOf(s.GetAd()); logs != nil {
		d["logs"] = logs
	}
	if image := document.ContainerImageOf(s.GetAd()); image != nil {
		d["container"] = image
	}
	if w := document.MachineOptionsOf(s.GetAd()); w != nil {
		d["machine"] = w
	}
	if packages := document.PackageMountsOf(s.GetAd()); len(packages) > 0 {
		d["packages"] = packages
	}
	if hints := hints(c, s); len(hints) > 0 {
		d["hints"] = hints
	}
	if ad, err := classad.Parse(s.GetAd()); err == nil && s.GetAd() != "" {
		if text, err := ad.MarshalJSON(); err == nil {
			d["ad"] = json.RawMessage(text)
		}
	}
	return frame.PrintJSON(c.Stdout, d)
}

// progressOf says how far a job is; nil: that says nothing of it.
func progressOf(c *frame.Invocation, s *scheddapi.JobStatus) *document.Progress {
	if s.GetState() != "" {
		return nil
	}
	j := document.JobOf(s, false)
	return document.ProgressOf(&j, c.Now())
}

// adLines prints an ad with an attribute a line.
func adLines(text string) string {
	ad, err := classad.Parse(text)
	if err != nil {
		return document.PrintableText(text)
	}
	return ad.Old()
}
