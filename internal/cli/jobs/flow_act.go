package jobs

import (
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// OrderFlow gives flows an order and prints what became of it.
func OrderFlow(c *frame.Invocation, selectors []string, order *scheddapi.FlowOrder, done string) error {
	results, err := changeJobs(c, &scheddapi.ActRequest{Verb: scheddapi.ActRequest_FLOW, Flow: order,
		Selection: &scheddapi.Selection{Selectors: selectors}})
	if err != nil {
		return err
	}
	return reportResults(c, results, func(*scheddapi.ActReply_Result) []string { return []string{done} })
}

// Flows returns flows, or without selectors those of the caller that are in the queue.
// What is no flow is an error.
func Flows(c *frame.Invocation, selectors []string) ([]*scheddapi.JobStatus, error) {
	q := &scheddapi.QueryRequest{Selection: &scheddapi.Selection{Selectors: selectors}, History: len(selectors) > 0}
	if len(selectors) == 0 {
		q.Selection.Selectors, q.Selection.Mine = []string{"all"}, true
	}
	list, silent, err := c.QueryPool("", q)
	if err != nil {
		return nil, err
	}
	c.PrintUnreachable(silent)
	if len(selectors) == 0 {
		return slices.DeleteFunc(list, func(s *scheddapi.JobStatus) bool { return s.GetFlow() == nil }), nil
	}
	for _, s := range list {
		if s.GetFlow() == nil {
			return nil, frame.WithHint(frame.KindErrorf(roost.Invalid, "%s is no flow",
				document.PrintableText(s.GetId())), "roost show shows jobs, and roost flow submit makes flows")
		}
	}
	return list, nil
}

// Retry has what failed of a job run again.
func Retry(c *frame.Invocation, id string) error { return actOne(c, id, scheddapi.ActRequest_RETRY) }

// Remove removes a job.
func Remove(c *frame.Invocation, id string) error { return actOne(c, id, scheddapi.ActRequest_REMOVE) }

// actOne changes one job.
func actOne(c *frame.Invocation, id string, verb scheddapi.ActRequest_Verb) error {
	results, err := changeJobs(c, &scheddapi.ActRequest{Verb: verb,
		Selection: &scheddapi.Selection{Selectors: []string{id}}})
	for _, r := range results {
		if err == nil && r.GetError() != "" {
			err = frame.KindErrorf(roost.ErrorKind(r.GetKind()), "%s", r.GetError())
		}
	}
	return err
}
