package flows

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/cli/jobs"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// How often the state of the recipes is asked for.
const (
	leastMakeInterval = 200 * time.Millisecond
	mostMakeInterval  = 5 * time.Second
	mostMakeSilence   = 10 * time.Minute // of the schedd
)

// recipeWatch waits for the recipes of a flow, and prints what each has printed once it
// has ended.
type recipeWatch struct {
	*frame.Invocation
	id      string
	printed map[string]bool // by job
	removed bool            // after an interrupt
	last    string          // line about the progress
}

// awaitRecipes waits until a flow of recipes has ended. An interrupt removes it. Its
// error is the exit status of make.
func awaitRecipes(c *frame.Invocation, id string) error {
	signals, release := c.NotifyInterrupts()
	defer release()
	c.Context = context.WithoutCancel(c.Context)
	w := &recipeWatch{Invocation: c, id: id, printed: map[string]bool{}}
	answered := time.Now()
	for {
		began := time.Now()
		s, count, err := w.ask()
		switch {
		case err == nil && document.IsFinal(s):
			return w.end(s)
		case err == nil:
			answered = began
			w.printProgress(s)
		case time.Since(answered) > mostMakeSilence:
			return frame.WithHint(err, "the recipes go on; see: roost flow status "+id)
		}
		// asking costs more the more recipes there are
		interval := min(max(leastMakeInterval, 10*time.Since(began)), mostMakeInterval)
		if count > 0 {
			interval = leastMakeInterval
		}
		if err := w.pause(interval, signals); err != nil {
			return err
		}
	}
}

// ask asks how the flow goes, and prints the output of recipes that have ended since the
// last call. count is their number.
func (w *recipeWatch) ask() (s *scheddapi.JobStatus, count int, err error) {
	if s, err = subflow(w.Invocation, w.id); err != nil {
		return nil, 0, err
	}
	count, err = w.printEnded()
	return s, count, err
}

// pause waits for a while. A signal removes the flow.
func (w *recipeWatch) pause(interval time.Duration, signals <-chan os.Signal) error {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-signals:
	}
	if w.removed {
		return frame.ExitError(makeExit)
	}
	w.removed = true
	fmt.Fprintf(w.Stderr, "roost make: interrupted; %s is being removed\n", w.id)
	return jobs.Remove(w.Invocation, w.id)
}

// printEnded prints the output of recipes that have ended since the last call, and
// returns how many there are.
func (w *recipeWatch) printEnded() (count int, err error) {
	// jobs of the flow have higher numbers, which bounds what is read of the history
	number, _, _ := strings.Cut(w.id, ".")
	list, _, err := w.QueryPool("", &scheddapi.QueryRequest{History: true, Selection: &scheddapi.Selection{
		Selectors:  []string{fmt.Sprintf("%s-%d", number, math.MaxUint32)},
		Constraint: fmt.Sprintf("%s == %q", roost.AttrFlowID, w.id)}})
	if err != nil {
		return 0, err
	}
	slices.SortFunc(list, func(a, b *scheddapi.JobStatus) int { return cmp.Compare(a.GetEnded(), b.GetEnded()) })
	for _, s := range list {
		if !document.IsFinal(s) || w.printed[s.GetId()] {
			continue
		}
		w.printed[s.GetId()] = true
		count++
		if err := jobs.WriteLog(w.Invocation, s.GetId(), w.Stdout); err != nil {
			fmt.Fprintf(w.Stderr, "roost make: the output of job %s is not known: %v\n", s.GetId(), err)
		}
	}
	return count, nil
}

// printProgress prints how many recipes have run, where that has changed.
func (w *recipeWatch) printProgress(s *scheddapi.JobStatus) {
	states := s.GetFlow().GetStates()
	text := fmt.Sprintf("%s: %d of %s done", w.id, states["done"],
		document.Plural(int(s.GetFlow().GetNodes()), "recipe"))
	for _, one := range []struct{ state, words string }{{"job", "in the queue"}, {"failed", "failed"},
		{"futile", "cannot run"}} {
		if n := states[one.state]; n > 0 {
			text += fmt.Sprintf(", %d %s", n, one.words)
		}
	}
	if text != w.last && w.ErrScreen.Terminal {
		fmt.Fprintln(w.Stderr, w.ErrScreen.ColourText(frame.Dim, text))
	}
	w.last = text
}

// end prints how the flow has ended, and returns the exit status of make.
func (w *recipeWatch) end(s *scheddapi.JobStatus) error {
	if !w.removed && s.GetState() == "completed" && s.GetExit().GetCode() == 0 && !s.GetRemoved() {
		return nil
	}
	fmt.Fprintf(w.Stderr, "roost make: *** %s: %s\n", w.id, document.PrintableText(s.GetReason()))
	return frame.ExitError(makeExit)
}
