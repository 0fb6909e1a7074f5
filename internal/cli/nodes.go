package cli

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
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

func nodesCommand() *command {
	return &command{
		name: "nodes", group: groupPool, summary: "list the machines of the pool", maxOperands: 0, run: listNodes,
		description: "Lists the execute nodes: how they stand, what is free of what they have, their load, and what " +
			"runs on them.",
		examples: []commandExample{
			{"roost nodes", "all nodes"},
			{"roost nodes --constraint 'Gpus > 0'", "those with a free GPU"},
			{"roost nodes --units", "each resource unit of the pool, and who waits for it"},
			{"roost nodes --gpus", "each GPU of the pool: its memory, what it does, and how it is"},
		},
		flags: []ucli.Flag{&ucli.StringFlag{Name: "constraint", Aliases: []string{"c"},
			Usage: "only nodes whose ad satisfies the ClassAd `EXPR`"},
			&ucli.BoolFlag{Name: "gpus", Usage: "list the GPUs of the nodes, one a line"},
			&ucli.BoolFlag{Name: "units", Usage: "list the resource units that the nodes are cut into, one a line"},
			jsonFlag()},
	}
}

// nodeRecord is what the ad of a machine says.
type nodeRecord struct {
	Name    string         `json:"name"`
	State   string         `json:"state"`
	Cpus    resourceAmount `json:"cpus"`
	Memory  resourceAmount `json:"memory_bytes"`
	Disk    resourceAmount `json:"disk_bytes"`
	GPUs    resourceAmount `json:"gpus"`
	Load    float64        `json:"load"`
	Running int64          `json:"running"`
	Claims  int64          `json:"claims"`
	Arch    string         `json:"arch"`
	OpSys   string         `json:"opsys"`
	Version string         `json:"version"`

	Devices []gpuDevice    `json:"gpu_devices,omitempty"`
	Units   []resourceUnit `json:"units,omitempty"`
	Drain   string         `json:"drain,omitempty"`   // why it is drained
	Comment string         `json:"comment,omitempty"` // what administrators say of it
	Owner   string         `json:"owner,omitempty"`   // why its owner does not lend it now

	activityText string
}

type resourceAmount struct {
	Free  float64 `json:"free"`
	Total float64 `json:"total"`
}

func listNodes(c *invocation) error {
	texts, err := c.queryAds(&wire.AdQuery{Type: "Machine", Constraint: c.stringFlag("constraint")})
	if err != nil {
		return err
	}
	nodes := make([]nodeRecord, 0, len(texts))
	for _, text := range texts {
		ad, err := classad.Parse(text)
		if err != nil {
			return kindErrorf(roost.Internal, "the ad of a node cannot be read: %v", err)
		}
		nodes = append(nodes, nodeRecordOf(ad))
	}
	slices.SortFunc(nodes, func(a, b nodeRecord) int { return compareNames(a.Name, b.Name) })
	c.addDrains(nodes)
	c.addComments(nodes)
	if c.wantsJSON() {
		return printJSON(c.stdout, jsonDocument{"nodes": nodes})
	}
	if len(nodes) == 0 {
		fmt.Fprintln(c.stderr, "no nodes match; is an execute node running? see: roost doctor")
		return nil
	}
	if c.flag("gpus") {
		t := gpuTable(nodes)
		if len(t.rows) == 0 {
			fmt.Fprintln(c.stderr, "these nodes have no GPUs that their startd has found; see: roost doctor")
			return nil
		}
		t.print(c.stdout, c.out)
		return nil
	}
	if c.flag("units") {
		unitTable(nodes).print(c.stdout, c.out)
		return nil
	}
	c.addRunningJobs(nodes)
	c.nodeTable(nodes).print(c.stdout, c.out)
	return nil
}

func nodeRecordOf(ad *classad.Ad) nodeRecord {
	text := func(name string) string { s, _ := ad.Str(name); return s }
	number := func(name string) float64 { f, _ := ad.Real(name); return f }
	whole := func(name string) int64 { return int64(number(name)) }
	pair := func(free, total string, unit roost.Bytes) resourceAmount {
		return resourceAmount{number(free) * float64(unit), number(total) * float64(unit)}
	}
	return nodeRecord{
		Name: text(roost.AttrName), State: strings.ToLower(text(roost.AttrState)), Load: number(roost.AttrLoadAvg),
		Cpus: pair(roost.AttrCpus, roost.AttrTotalCpus, 1), GPUs: pair(roost.AttrGpus, roost.AttrTotalGpus, 1),
		Memory:  pair(roost.AttrMemory, roost.AttrTotalMemory, roost.MiB),
		Disk:    pair(roost.AttrDisk, roost.AttrTotalDisk, roost.KiB),
		Running: whole(roost.AttrNumRunning), Claims: whole(roost.AttrNumClaims), Arch: text(roost.AttrArch),
		OpSys: text(roost.AttrOpSys), Version: text(roost.AttrVersion),
		Devices: devicesOf(ad), Units: resourceUnitsOf(ad), Owner: text(roost.AttrOwnerBusyReason),
	}
}

// maxWhat bounds how many running tasks are looked at to say what a node does.
const maxWhat = 2000

// addRunningJobs fills in which jobs run where. It is a comfort: without an answer the
// column stays empty.
func (c *invocation) addRunningJobs(nodes []nodeRecord) {
	found, missing, err := c.queryPool("",
		&wire.QueryRequest{Selection: &wire.Selection{States: []string{roost.Running.String(),
			roost.Suspended.String()}}, Tasks: true, Limit: maxWhat})
	if err != nil {
		return
	}
	c.printUnreachable(missing)
	counts := map[string]map[string]int{}
	for _, s := range found {
		if counts[s.GetNode()] == nil {
			counts[s.GetNode()] = map[string]int{}
		}
		counts[s.GetNode()][printableText(s.GetName()+" ("+s.GetOwner()+")")]++
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
func (c *invocation) addDrains(nodes []nodeRecord) {
	var drains []attributedObject[ledger.MachineDrain]
	if c.cellObjects(string(ledger.KindDrain), &drains) != nil {
		return
	}
	for _, d := range drains {
		i := slices.IndexFunc(nodes, func(n nodeRecord) bool { return n.Name == d.Object.Node })
		if i >= 0 && d.Object.Contains(time.Now()) {
			nodes[i].State, nodes[i].Drain = "drained", cmp.Or(d.Object.Reason, "no reason was given")
		}
	}
}

// addComments fills in the comments of administrators. Where nobody can be asked there
// are none.
func (c *invocation) addComments(nodes []nodeRecord) {
	comments, err := c.nodeComments()
	if err != nil {
		return
	}
	for i := range nodes {
		nodes[i].Comment = comments[nodes[i].Name]
	}
}

func (c *invocation) nodeTable(nodes []nodeRecord) *textTable {
	t := &textTable{columns: []tableColumn{
		{head: "NODE"}, {head: "STATE"}, {head: "CPUS FREE", rightAligned: true},
		{head: "MEMORY FREE", rightAligned: true}, {head: "GPUS FREE", rightAligned: true},
		{head: "LOAD", rightAligned: true, dropPriority: 2}, {head: "RUNNING", rightAligned: true, dropPriority: 1},
		{head: "WHAT", minWidth: 10, dropPriority: 3},
	}}
	for _, n := range nodes {
		gpus := ""
		if n.GPUs.Total > 0 {
			gpus = fmt.Sprintf("%g/%g", n.GPUs.Free, n.GPUs.Total)
		}
		t.addRow(tableCell{n.Name, ""}, tableCell{n.State, nodeColour(n.State)},
			tableCell{fmt.Sprintf("%g/%g", n.Cpus.Free, n.Cpus.Total), ""},
			tableCell{memoryText(n.Memory), ""}, tableCell{gpus, ""}, tableCell{fmt.Sprintf("%.2f", n.Load), ""},
			tableCell{fmt.Sprint(n.Running), ""}, tableCell{n.activity(), dim})
	}
	t.dropEmptyColumns("GPUS FREE", "WHAT")
	return t
}

// activity says what a node does, why it may get nothing more, and what administrators
// say of it.
func (n *nodeRecord) activity() string {
	var parts []string
	switch {
	case n.Drain != "":
		parts = append(parts, "drained: "+printableText(n.Drain))
	case n.Owner != "":
		parts = append(parts, printableText(n.Owner))
	}
	for _, more := range []string{printableText(n.Comment), n.activityText} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	return strings.Join(parts, "; ")
}

// memoryText prints what is free of a memory in one unit.
func memoryText(a resourceAmount) string {
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
		return green
	case "claimed":
		return blue
	case "owner", "drained":
		return yellow
	}
	return ""
}
