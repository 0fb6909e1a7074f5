package jobs

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/submit/jobspec"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// OrderUpdate sends an order to services and prints what became of it. With --wait it
// returns when their updates have ended.
func OrderUpdate(c *frame.Invocation, selectors []string, order *scheddapi.UpdateOrder, done string) error {
	results, err := changeJobs(c, &scheddapi.ActRequest{Verb: scheddapi.ActRequest_UPDATE, Update: order,
		Selection: &scheddapi.Selection{Selectors: selectors}})
	if err != nil {
		return err
	}
	if err := reportUpdates(c, results, done); err != nil || !c.Flag("wait") || order.GetPlan() {
		return err
	}
	return awaitUpdates(c, results)
}

// ReviseService has a service become what a job of a job file is.
func ReviseService(c *frame.Invocation, id string, job *jobspec.Job, plan bool) error {
	if err := uploadScript(c, job, nil); err != nil {
		return err
	}
	order := &scheddapi.UpdateOrder{Ad: job.Ad.String(), Count: uint32(job.Count), Plan: plan}
	for _, col := range job.Columns {
		order.Columns = append(order.Columns, &scheddapi.Column{Name: col.Name, Values: col.Values})
	}
	return OrderUpdate(c, []string{id}, order, "")
}

// reportUpdates prints the notes of each result, or that it is done.
func reportUpdates(c *frame.Invocation, results []*scheddapi.ActReply_Result, done string) error {
	return reportResults(c, results, func(r *scheddapi.ActReply_Result) []string {
		if len(r.GetNotes()) == 0 {
			return []string{done}
		}
		var lines []string
		for _, note := range r.GetNotes() {
			lines = append(lines, document.PrintableText(note))
		}
		return lines
	})
}

// awaitInterval is how often the state of an update is asked for.
const awaitInterval = 500 * time.Millisecond

// awaitUpdates returns when the updates of services have ended. It is an error if one did
// not end with all tasks of the new revision.
func awaitUpdates(c *frame.Invocation, results []*scheddapi.ActReply_Result) error {
	for _, r := range results {
		last := ""
		for {
			s, err := FindJob(c, r.GetId(), &scheddapi.QueryRequest{})
			if err != nil {
				return err
			}
			u := s.GetUpdate()
			if text := updateText(u); text != last && !c.WantsJSON() {
				fmt.Fprintf(c.Stderr, "%s: %s\n", r.GetId(), text)
				last = text
			}
			switch u.GetState() {
			case "", "done", "closed":
			case "undone", "aborted", "partial", "paused", "undo-paused", "waiting-promote":
				return frame.ExitError(1)
			default:
				select {
				case <-c.Context.Done():
					return c.Context.Err()
				case <-time.After(awaitInterval):
				}
				continue
			}
			break
		}
	}
	return nil
}

// updateText says in a line how the update of a service goes; empty: it was never
// updated.
func updateText(u *scheddapi.UpdateProgress) string {
	if u == nil {
		return ""
	}
	p := document.UpdateOf(u)
	return p.Text()
}
