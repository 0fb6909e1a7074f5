package jobs

import (
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
	if err := newNamePins().pin(c, job); err != nil {
		return err
	}
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

// awaitUpdates returns when the updates of services have ended. It is an error if one did
// not end with all tasks of the new revision.
func awaitUpdates(c *frame.Invocation, results []*scheddapi.ActReply_Result) error {
	sel := &scheddapi.Selection{}
	for _, r := range results {
		sel.Selectors = append(sel.Selectors, r.GetId())
	}
	if len(sel.Selectors) == 0 {
		return nil
	}
	return awaitServices(c, sel, untilUpdated, false)
}
