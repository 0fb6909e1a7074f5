package jobs

import (
	"context"
	"fmt"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// waitVerdict says whether something that is waited for has come.
type waitVerdict int

const (
	verdictOpen   waitVerdict = iota // not yet
	verdictMet                       // it has
	verdictFailed                    // it cannot come any more, or not without somebody's help
)

// serviceWait is what is waited for in the life of services.
type serviceWait struct {
	verdict func(*scheddapi.JobStatus) (waitVerdict, error)
	text    func(*scheddapi.JobStatus) string // how far a job is
}

// untilReady waits until all tasks that are to run are ready, or the task.
var untilReady = serviceWait{
	verdict: func(s *scheddapi.JobStatus) (waitVerdict, error) {
		h := document.ServiceOf(s.GetService())
		switch {
		case document.IsFinal(s):
			return verdictFailed, nil
		case h == nil:
			return verdictFailed, frame.WithHint(frame.UsageErrorf("%s is no service, and never ready", s.GetId()),
				"wait for its end with: roost wait "+s.GetId())
		case s.GetState() != "" && s.GetTasks() > 1 && h.State == "ready":
			return verdictMet, nil
		case (s.GetState() == "" || s.GetTasks() == 1) && h.IsAsWanted():
			return verdictMet, nil
		}
		return verdictOpen, nil
	},
	text: func(s *scheddapi.JobStatus) string {
		h := document.ServiceOf(s.GetService())
		switch {
		case document.IsFinal(s):
			return document.StateOf(s)
		case h == nil:
			return ""
		case s.GetState() != "" && s.GetTasks() > 1 && h.State != "":
			return h.State
		}
		return h.Text()
	},
}

// untilUpdated waits until the update of a job has ended, or stopped until somebody says
// how it goes on.
var untilUpdated = serviceWait{
	verdict: func(s *scheddapi.JobStatus) (waitVerdict, error) {
		state := s.GetUpdate().GetState()
		if s.GetUpdate().GetPromotesAt() != 0 { // it goes on by itself
			return verdictOpen, nil
		}
		switch state {
		case "", "done", "closed":
			return verdictMet, nil
		case "undone", "aborted", "partial", "paused", "undo-paused", "waiting-promote":
			return verdictFailed, nil
		}
		if document.IsFinal(s) {
			return verdictFailed, nil
		}
		return verdictOpen, nil
	},
	text: func(s *scheddapi.JobStatus) string {
		if u := document.UpdateOf(s.GetUpdate()); u != nil {
			return u.Text()
		}
		return "it was never updated"
	},
}

// awaitInterval is how often the schedds are asked.
const awaitInterval = 500 * time.Millisecond

// awaitServices waits for something in the life of each selected job, wherever it is
// queued. The exit status is 1 if it will not come for one of them.
func awaitServices(c *frame.Invocation, sel *scheddapi.Selection, w serviceWait, quiet bool) error {
	last, answered := map[string]string{}, time.Now()
	for history := false; ; history = true { // names mean jobs in the queue; the ids found may leave it
		found, missing, err := c.QueryPool("", &scheddapi.QueryRequest{Selection: sel, History: history,
			Tasks: frame.NamesOnlyTasks(sel.GetSelectors())})
		switch {
		case err == nil && len(found) == 0 && !history:
			continue
		case err != nil:
			return err
		case isMissing(sel, missing) && time.Since(answered) < frame.WatchTimeout:
			if err := awaitNext(c); err != nil { // the queue of the cell gets another leader
				return err
			}
			continue
		case isMissing(sel, missing) || len(found) == 0 && len(missing) > 0:
			return frame.UnreachableError(missing)
		case len(found) == 0:
			return frame.KindErrorf(roost.NotFound, "no jobs match")
		}
		answered = time.Now()
		open, failed := 0, 0
		ids := make([]string, len(found))
		for i, s := range found {
			verdict, err := w.verdict(s)
			if err != nil {
				return err
			}
			switch verdict {
			case verdictOpen:
				open++
			case verdictFailed:
				failed++
			}
			ids[i] = s.GetId()
			if text := w.text(s); text != last[s.GetId()] {
				last[s.GetId()] = text
				showServiceWait(c, s, text, quiet)
			}
		}
		switch {
		case open == 0 && failed > 0:
			return frame.ExitError(1)
		case open == 0:
			return nil
		}
		sel = &scheddapi.Selection{Selectors: ids} // "last" may mean another job when it is asked again
		if err := awaitNext(c); err != nil {
			return err
		}
	}
}

// awaitNext waits until the schedds are asked again.
func awaitNext(c *frame.Invocation) error {
	select {
	case <-c.Context.Done():
		return c.Context.Err()
	case <-time.After(awaitInterval):
		return nil
	}
}

// isMissing reports whether a schedd that has a selected job did not answer.
func isMissing(sel *scheddapi.Selection, missing []frame.UnreachableSchedd) bool {
	for _, word := range sel.GetSelectors() {
		for _, m := range missing {
			if frame.IDHost(word) == m.Node {
				return true
			}
		}
	}
	return false
}

// showServiceWait prints how far a job is.
func showServiceWait(c *frame.Invocation, s *scheddapi.JobStatus, text string, quiet bool) {
	switch {
	case c.Command.Name == "wait" && c.WantsJSON():
		frame.PrintLine(c.Stdout, frame.JSONDocument{"job": document.JobOf(s, s.GetState() != "")})
	case !quiet && !c.WantsJSON():
		fmt.Fprintf(c.Stderr, "%s: %s\n", s.GetId(), text)
	}
}

// waitForServices is roost wait with --ready or --update.
func waitForServices(c *frame.Invocation, sel *scheddapi.Selection, limit time.Duration) error {
	w := untilReady
	switch {
	case c.Flag("ready") && c.Flag("update"):
		return frame.UsageErrorf("--ready and --update: one of them is wanted")
	case c.Flag("update"):
		w = untilUpdated
	}
	if limit > 0 {
		var cancel context.CancelFunc
		c.Context, cancel = context.WithTimeout(c.Context, limit)
		defer cancel()
	}
	err := awaitServices(c, sel, w, c.Flag("quiet"))
	if err != nil && limit > 0 && c.Context.Err() != nil {
		fmt.Fprintf(c.Stderr, "roost: not done after %v\n", limit)
		return frame.ExitError(exitTimedOut)
	}
	return err
}
