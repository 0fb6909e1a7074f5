package jobs

import (
	"fmt"
	"io"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
)

// showPreemptions prints what ended attempts of a task before their time, what that cost,
// and where the task went on. It also prints whom the task displaced.
func showPreemptions(c *frame.Invocation, chain *document.PreemptionChain) {
	if len(chain.Evictions) > 0 {
		t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "EVICTED"}, {Head: "ATTEMPT"}, {Head: "NODE"},
			{Head: "BY"}, {Head: "LOST"}, {Head: "WENT ON"}}}
		for i := range chain.Evictions {
			e := &chain.Evictions[i]
			by := e.Cause
			if e.Preemptor != nil {
				by = partyText(*e.Preemptor)
			}
			t.AddRow(frame.TableCell{Text: e.Time}, frame.TableCell{Text: fmt.Sprint(e.Attempt)},
				frame.TableCell{Text: e.Node}, frame.TableCell{Text: by}, frame.TableCell{Text: e.CostText()},
				frame.TableCell{Text: e.NextText()})
		}
		io.WriteString(c.Stdout, "\n")
		t.Print(c.Stdout, c.OutScreen)
	}
	if len(chain.Displaced) > 0 {
		t := &frame.TextTable{Columns: []frame.TableColumn{{Head: "DISPLACED"},
			{Head: "FOR ATTEMPT"}, {Head: "STARTED"}}}
		for _, d := range chain.Displaced {
			t.AddRow(frame.TableCell{Text: partyText(d.PreemptionParty)},
				frame.TableCell{Text: fmt.Sprint(d.Attempt)}, frame.TableCell{Text: d.Time})
		}
		io.WriteString(c.Stdout, "\n")
		t.Print(c.Stdout, c.OutScreen)
	}
}

// partyText names a job that displaced another, or that was displaced.
func partyText(p document.PreemptionParty) string {
	job := "a job"
	if p.Job != "" {
		job = "job " + p.Job
	}
	return document.PrintableText(fmt.Sprintf("%s of %s (%s)", job, p.Owner, p.Band))
}
