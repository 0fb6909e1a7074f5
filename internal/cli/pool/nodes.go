package pool

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// NodesCommand returns roost nodes: list the machines of the pool.
func NodesCommand() *frame.Command {
	return &frame.Command{
		Name: "nodes", Group: frame.GroupPool, Summary: "list the machines of the pool", MaxOperands: 0, Run: listNodes,
		Description: "Lists the execute nodes: how they stand, what is free of what they have, their load, and what " +
			"runs on them.",
		Examples: []frame.Example{
			{Line: "roost nodes", Description: "all nodes"},
			{Line: "roost nodes --constraint 'Gpus > 0'", Description: "those with a free GPU"},
			{Line: "roost nodes --units", Description: "each resource unit of the pool, and who waits for it"},
			{Line: "roost nodes --gpus", Description: "each GPU of the pool: its memory, what it does, and how it is"},
		},
		Flags: []ucli.Flag{&ucli.StringFlag{Name: "constraint", Aliases: []string{"c"},
			Usage: "only nodes whose ad satisfies the ClassAd `EXPR`"},
			&ucli.BoolFlag{Name: "gpus", Usage: "list the GPUs of the nodes, one a line"},
			&ucli.BoolFlag{Name: "units", Usage: "list the resource units that the nodes are cut into, one a line"},
			frame.JSONFlag()},
	}
}

func listNodes(c *frame.Invocation) error {
	texts, err := c.QueryAds(&scheddapi.AdQuery{Type: "Machine", Constraint: c.StringFlag("constraint")})
	if err != nil {
		return err
	}
	nodes := make([]document.Node, 0, len(texts))
	for _, text := range texts {
		ad, err := classad.Parse(text)
		if err != nil {
			return frame.KindErrorf(roost.Internal, "the ad of a node cannot be read: %v", err)
		}
		nodes = append(nodes, document.NodeOf(ad))
	}
	slices.SortFunc(nodes, func(a, b document.Node) int { return document.CompareNames(a.Name, b.Name) })
	addDrains(c, nodes)
	addComments(c, nodes)
	if c.WantsJSON() {
		return frame.PrintJSON(c.Stdout, frame.JSONDocument{"nodes": nodes})
	}
	if len(nodes) == 0 {
		fmt.Fprintln(c.Stderr, "no nodes match; is an execute node running? see: roost doctor")
		return nil
	}
	if c.Flag("gpus") {
		t := gpuTable(nodes)
		if len(t.Rows) == 0 {
			fmt.Fprintln(c.Stderr, "these nodes have no GPUs that their startd has found; see: roost doctor")
			return nil
		}
		t.Print(c.Stdout, c.OutScreen)
		return nil
	}
	if c.Flag("units") {
		unitTable(nodes).Print(c.Stdout, c.OutScreen)
		return nil
	}
	nodeTable(nodes, runningJobs(c)).Print(c.Stdout, c.OutScreen)
	return nil
}

// maxWhat bounds how many running tasks are looked at to say what a node does.
const maxWhat = 2000

// runningJobs says which jobs run on each node. It is a comfort: without an answer the
// column stays empty.
func runningJobs(c *frame.Invocation) map[string]string {
	found, missing, err := c.QueryPool("",
		&scheddapi.QueryRequest{Selection: &scheddapi.Selection{States: []string{roost.Running.String(),
			roost.Suspended.String()}}, Tasks: true, Limit: maxWhat})
	if err != nil {
		return nil
	}
	c.PrintUnreachable(missing)
	counts := map[string]map[string]int{}
	for _, s := range found {
		if counts[s.GetNode()] == nil {
			counts[s.GetNode()] = map[string]int{}
		}
		counts[s.GetNode()][document.PrintableText(s.GetName()+" ("+s.GetOwner()+")")]++
	}
	texts := make(map[string]string, len(counts))
	for node, jobs := range counts {
		var parts []string
		for what, count := range jobs {
			if count > 1 {
				what = fmt.Sprintf("%d× %s", count, what)
			}
			parts = append(parts, what)
		}
		slices.Sort(parts)
		texts[node] = strings.Join(parts, ", ")
	}
	return texts
}

// addDrains marks the nodes that get no new tasks because somebody has drained them.
// Where nobody can be asked none is.
func addDrains(c *frame.Invocation, nodes []document.Node) {
	var drains []admin.AttributedObject[ledger.MachineDrain]
	if admin.CellObjects(c, string(ledger.KindDrain), &drains) != nil {
		return
	}
	for _, d := range drains {
		i := slices.IndexFunc(nodes, func(n document.Node) bool { return n.Name == d.Object.Node })
		if i >= 0 && d.Object.Contains(time.Now()) {
			nodes[i].State, nodes[i].Drain = "drained", cmp.Or(d.Object.Reason, "no reason was given")
		}
	}
}

// addComments fills in the comments of administrators. Where nobody can be asked there
// are none.
func addComments(c *frame.Invocation, nodes []document.Node) {
	comments, err := admin.NodeComments(c)
	if err != nil {
		return
	}
	for i := range nodes {
		nodes[i].Comment = comments[nodes[i].Name]
	}
}

func nodeTable(nodes []document.Node, running map[string]string) *frame.TextTable {
	t := &frame.TextTable{Columns: []frame.TableColumn{
		{Head: "NODE"}, {Head: "STATE"}, {Head: "CPUS FREE", RightAligned: true},
		{Head: "MEMORY FREE", RightAligned: true}, {Head: "GPUS FREE", RightAligned: true},
		{Head: "LOAD", RightAligned: true, DropPriority: 2}, {Head: "RUNNING", RightAligned: true, DropPriority: 1},
		{Head: "WHAT", MinWidth: 10, DropPriority: 3},
	}}
	for _, n := range nodes {
		gpus := ""
		if n.GPUs.Total > 0 {
			gpus = fmt.Sprintf("%g/%g", n.GPUs.Free, n.GPUs.Total)
		}
		t.AddRow(frame.TableCell{Text: n.Name}, frame.TableCell{Text: n.State, Colour: nodeColour(n.State)},
			frame.TableCell{Text: fmt.Sprintf("%g/%g", n.Cpus.Free, n.Cpus.Total)},
			frame.TableCell{Text: memoryText(n.Memory)}, frame.TableCell{Text: gpus},
			frame.TableCell{Text: fmt.Sprintf("%.2f", n.Load)},
			frame.TableCell{Text: fmt.Sprint(n.Running)},
			frame.TableCell{Text: nodeActivity(&n, running[n.Name]), Colour: frame.Dim})
	}
	t.DropEmptyColumns("GPUS FREE", "WHAT")
	return t
}

// nodeActivity says what a node does, why it may get nothing more, and what
// administrators say of it.
func nodeActivity(n *document.Node, running string) string {
	var parts []string
	switch {
	case n.Drain != "":
		parts = append(parts, "drained: "+document.PrintableText(n.Drain))
	case n.Owner != "":
		parts = append(parts, document.PrintableText(n.Owner))
	}
	if n.Pilot != nil {
		parts = append(parts, pilotText(n.Pilot, time.Now()))
	}
	for _, more := range []string{document.PrintableText(n.Comment), running} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	return strings.Join(parts, "; ")
}

// pilotText says whose pilot a node is, from where, and how long it stays.
func pilotText(p *document.Pilot, now time.Time) string {
	text := "pilot of " + document.PrintableText(p.Owner)
	if p.Provider != "" {
		text += " from " + document.PrintableText(p.Provider)
	}
	until, err := time.Parse(time.RFC3339, p.Until)
	if err != nil {
		return text
	}
	if left := until.Sub(now).Truncate(time.Minute); left > 0 {
		return text + " for " + strings.TrimSuffix(left.String(), "0s")
	}
	return text + ", which ends now"
}

// memoryText prints what is free of a memory in one unit.
func memoryText(a document.ResourceAmount) string {
	unit, name := float64(roost.GiB), "GiB"
	if a.Total < 4*unit {
		unit, name = float64(roost.MiB), "MiB"
	}
	digits := 1
	if name == "MiB" {
		digits = 0
	}
	trim := func(f float64) string {
		text := strconv.FormatFloat(f/unit, 'f', digits, 64)
		return strings.TrimSuffix(text, ".0")
	}
	return trim(a.Free) + "/" + trim(a.Total) + " " + name
}

func nodeColour(state string) string {
	switch state {
	case "unclaimed":
		return frame.Green
	case "claimed":
		return frame.Blue
	case "owner", "drained":
		return frame.Yellow
	}
	return ""
}
