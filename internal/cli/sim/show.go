package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost/internal/cellhistory"
	"github.com/roost-batch/roost/internal/cli/cell"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
)

func showSubcommand() (frame.Subcommand, []ucli.Flag) {
	return frame.Subcommand{
		Name: "show", Summary: "what a cell was like at a checkpoint", MinOperands: 0, MaxOperands: 1,
		OperandNames: "a checkpoint of a cell, or nothing for the pool as it is now", Run: runShow,
	}, []ucli.Flag{frame.JSONFlag()}
}

func runShow(c *frame.Invocation, args []string) error {
	p, err := cell.ReadCellCheckpoint(c, append(args, "")[0])
	if err != nil {
		return err
	}
	past := describePast(p)
	if c.WantsJSON() {
		return frame.PrintDocument(c.Stdout, past)
	}
	printPast(c, past)
	return nil
}

// printPast prints what a cell was like: machines, shares, and why tasks waited.
func printPast(c *frame.Invocation, p *cellhistory.PastCell) {
	cores, gpus, states := p.Cores(), p.GPUs(), p.States()
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(states)) {
		parts = append(parts, fmt.Sprintf("%d %s", states[state], state))
	}
	fmt.Fprintf(c.Stdout, "%s, led by %s\n%s: %s\n%.4g of %.4g cores held", c.OutScreen.ColourText(frame.Bold,
		"The cell at "+p.At.Format(time.RFC3339)), document.PrintableText(p.Leader),
		document.Plural(len(p.Nodes), "node"), strings.Join(parts, ", "), cores.Total-cores.Free, cores.Total)
	if gpus.Total > 0 {
		fmt.Fprintf(c.Stdout, ", %.4g of %.4g GPUs", gpus.Total-gpus.Free, gpus.Total)
	}
	fmt.Fprint(c.Stdout, "\n\n")
	shares := &frame.TextTable{Columns: []frame.TableColumn{{Head: "SUBMITTER", MinWidth: 12},
		{Head: "CORES", RightAligned: true}, {Head: "SHARE", RightAligned: true},
		{Head: "PRIORITY", RightAligned: true}, {Head: "WAITS"}}}
	for i := range p.Shares.Submitters {
		s := &p.Shares.Submitters[i]
		waits := ""
		if s.IsWaiting {
			waits = "yes"
		}
		shares.AddRow(frame.TableCell{Text: document.PrintableText(s.Name)},
			frame.TableCell{Text: fmt.Sprintf("%.4g", s.Cores)},
			frame.TableCell{Text: fmt.Sprintf("%.0f%%", 100*s.PoolShare)},
			frame.TableCell{Text: fmt.Sprintf("%.4g", s.EffectivePriority)}, frame.TableCell{Text: waits})
	}
	shares.Print(c.Stdout, c.OutScreen)
	if len(p.Waiting) == 0 {
		fmt.Fprintln(c.Stdout, "\nNo task waited for a machine.")
		return
	}
	fmt.Fprintln(c.Stdout)
	waiting := &frame.TextTable{Columns: []frame.TableColumn{{Head: "JOBS", MinWidth: 8},
		{Head: "OWNER", MinWidth: 6}, {Head: "BAND", DropPriority: 1}, {Head: "TASKS", RightAligned: true},
		{Head: "WHY", MinWidth: 20}}}
	for i := range p.Waiting {
		r := &p.Waiting[i]
		why := r.Why
		if why == "" {
			why = "the next plan starts it"
		}
		waiting.AddRow(frame.TableCell{Text: document.PrintableText(strings.Join(r.Jobs, " "))},
			frame.TableCell{Text: document.PrintableText(r.Owner)}, frame.TableCell{Text: r.Band},
			frame.TableCell{Text: fmt.Sprint(r.Tasks)}, frame.TableCell{Text: document.PrintableText(why)})
	}
	waiting.Print(c.Stdout, c.OutScreen)
	if p.MoreWaiting > 0 {
		fmt.Fprintf(c.Stdout, "and %s more\n", document.Plural(p.MoreWaiting, "request"))
	}
}
