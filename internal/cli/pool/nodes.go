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
	"github.com/roost-batch/roost/internal/wire"
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

// NodeRecord is what the ad of a machine says.
type NodeRecord struct {
	Name    string         `json:"name"`
	State   string         `json:"state"`
	Cpus    ResourceAmount `json:"cpus"`
	Memory  ResourceAmount `json:"memory_bytes"`
	Disk    ResourceAmount `json:"disk_bytes"`
	GPUs    ResourceAmount `json:"gpus"`
	Load    float64        `json:"load"`
	Running int64          `json:"running"`
	Claims  int64          `json:"claims"`
	Arch    string         `json:"arch"`
	OpSys   string         `json:"opsys"`
	Version string         `json:"version"`

	Devices []GPUDevice    `json:"gpu_devices,omitempty"`
	Units   []ResourceUnit `json:"units,omitempty"`
	Drain   string         `json:"drain,omitempty"`   // why it is drained
	Comment string         `json:"comment,omitempty"` // what administrators say of it
	Owner   string         `json:"owner,omitempty"`   // why its owner does not lend it now

	activityText string
}

// ResourceAmount is how much of a resource is free, and how much there is.
type ResourceAmount struct {
	Free  float64 `json:"free"`
	Total float64 `json:"total"`
}

func listNodes(c *frame.Invocation) error {
	texts, err := c.QueryAds(&wire.AdQuery{Type: "Machine", Constraint: c.StringFlag("constraint")})
	if err != nil {
		return err
	}
	nodes := make([]NodeRecord, 0, len(texts))
	for _, text := range texts {
		ad, err := classad.Parse(text)
		if err != nil {
			return frame.KindErrorf(roost.Internal, "the ad of a node cannot be read: %v", err)
		}
		nodes = append(nodes, NodeRecordOf(ad))
	}
	slices.SortFunc(nodes, func(a, b NodeRecord) int { return frame.CompareNames(a.Name, b.Name) })
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
	addRunningJobs(c, nodes)
	nodeTable(c, nodes).Print(c.Stdout, c.OutScreen)
	return nil
}

// NodeRecordOf reads the ad of a machine.
func NodeRecordOf(ad *classad.Ad) NodeRecord {
	text := func(name string) string { s, _ := ad.Str(name); return s }
	number := func(name string) float64 { f, _ := ad.Real(name); return f }
	whole := func(name string) int64 { return int64(number(name)) }
	pair := func(free, total string, unit roost.Bytes) ResourceAmount {
		return ResourceAmount{number(free) * float64(unit), number(total) * float64(unit)}
	}
	return NodeRecord{
		Name: text(roost.AttrName), State: strings.ToLower(text(roost.AttrState)), Load: number(roost.AttrLoadAvg),
		Cpus: pair(roost.AttrCpus, roost.AttrTotalCpus, 1), GPUs: pair(roost.AttrGpus, roost.AttrTotalGpus, 1),
		Memory:  pair(roost.AttrMemory, roost.AttrTotalMemory, roost.MiB),
		Disk:    pair(roost.AttrDisk, roost.AttrTotalDisk, roost.KiB),
		Running: whole(roost.AttrNumRunning), Claims: whole(roost.AttrNumClaims), Arch: text(roost.AttrArch),
		OpSys: text(roost.AttrOpSys), Version: text(roost.AttrVersion),
		Devices: DevicesOf(ad), Units: resourceUnitsOf(ad), Owner: text(roost.AttrOwnerBusyReason),
	}
}

// maxWhat bounds how many running tasks are looked at to say what a node does.
const maxWhat = 2000

// addRunningJobs fills in which jobs run where. It is a comfort: without an answer the
// column stays empty.
func addRunningJobs(c *frame.Invocation, nodes []NodeRecord) {
	found, missing, err := c.QueryPool("",
		&wire.QueryRequest{Selection: &wire.Selection{States: []string{roost.Running.String(),
			roost.Suspended.String()}}, Tasks: true, Limit: maxWhat})
	if err != nil {
		return
	}
	c.PrintUnreachable(missing)
	counts := map[string]map[string]int{}
	for _, s := range found {
		if counts[s.GetNode()] == nil {
			counts[s.GetNode()] = map[string]int{}
		}
		counts[s.GetNode()][frame.PrintableText(s.GetName()+" ("+s.GetOwner()+")")]++
	}
	for i, n := range nodes {
		var parts []string
		for what, count := range counts[n.Name] {
			if count > 1 {
				what = fmt.Sprintf("%d× %s", count, what)
			}
			parts = append(parts, what)
		}
		slices.Sort(parts)
		nodes[i].activityText = strings.Join(parts, ", ")
	}
}

// addDrains marks the nodes that get no new tasks because somebody has drained them.
// Where nobody can be asked none is.
func addDrains(c *frame.Invocation, nodes []NodeRecord) {
	var drains []admin.AttributedObject[ledger.MachineDrain]
	if admin.CellObjects(c, string(ledger.KindDrain), &drains) != nil {
		return
	}
	for _, d := range drains {
		i := slices.IndexFunc(nodes, func(n NodeRecord) bool { return n.Name == d.Object.Node })
		if i >= 0 && d.Object.Contains(time.Now()) {
			nodes[i].State, nodes[i].Drain = "drained", cmp.Or(d.Object.Reason, "no reason was given")
		}
	}
}

// addComments fills in the comments of administrators. Where nobody can be asked there
// are none.
func addComments(c *frame.Invocation, nodes []NodeRecord) {
	comments, err := admin.NodeComments(c)
	if err != nil {
		return
	}
	for i := range nodes {
		nodes[i].Comment = comments[nodes[i].Name]
	}
}

func nodeTable(c *frame.Invocation, nodes []NodeRecord) *frame.TextTable {
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
			frame.TableCell{Text: fmt.Sprint(n.Running)}, frame.TableCell{Text: n.activity(), Colour: frame.Dim})
	}
	t.DropEmptyColumns("GPUS FREE", "WHAT")
	return t
}

// activity says what a node does, why it may get nothing more, and what administrators
// say of it.
func (n *NodeRecord) activity() string {
	var parts []string
	switch {
	case n.Drain != "":
		parts = append(parts, "drained: "+frame.PrintableText(n.Drain))
	case n.Owner != "":
		parts = append(parts, frame.PrintableText(n.Owner))
	}
	for _, more := range []string{frame.PrintableText(n.Comment), n.activityText} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	return strings.Join(parts, "; ")
}

// memoryText prints what is free of a memory in one unit.
func memoryText(a ResourceAmount) string {
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
