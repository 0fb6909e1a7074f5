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
		name: "nodes", group: groupPool, brief: "list the machines of the pool", most: 0, do: listNodes,
		about: "Lists the execute nodes: how they stand, what is free of what they have, their load, and what runs on them.",
		examples: []example{
			{"roost nodes", "all nodes"},
			{"roost nodes --constraint 'Gpus > 0'", "those with a free GPU"},
			{"roost nodes --units", "each resource unit of the pool, and who waits for it"},
			{"roost nodes --gpus", "each GPU of the pool: its memory, what it does, and how it is"},
		},
		flags: []ucli.Flag{&ucli.StringFlag{Name: "constraint", Aliases: []string{"c"}, Usage: "only nodes whose ad satisfies the ClassAd `EXPR`"},
			&ucli.BoolFlag{Name: "gpus", Usage: "list the GPUs of the nodes, one a line"},
			&ucli.BoolFlag{Name: "units", Usage: "list the resource units that the nodes are cut into, one a line"}, jsonFlag()},
	}
}

// node is what the ad of a machine says.
type node struct {
	Name    string  `json:"name"`
	State   string  `json:"state"`
	Cpus    amount  `json:"cpus"`
	Memory  amount  `json:"memory_bytes"`
	Disk    amount  `json:"disk_bytes"`
	GPUs    amount  `json:"gpus"`
	Load    float64 `json:"load"`
	Running int64   `json:"running"`
	Claims  int64   `json:"claims"`
	Arch    string  `json:"arch"`
	OpSys   string  `json:"opsys"`
	Version string  `json:"version"`

	Devices []device `json:"gpu_devices,omitempty"`
	Units   []unit   `json:"units,omitempty"`
	Drain   string   `json:"drain,omitempty"`   // why it is drained
	Comment string   `json:"comment,omitempty"` // what administrators say of it
	Owner   string   `json:"owner,omitempty"`   // why its owner does not lend it now

	what string
}

type amount struct {
	Free  float64 `json:"free"`
	Total float64 `json:"total"`
}

func listNodes(c *call) error {
	texts, err := c.ads(&wire.AdQuery{Type: "Machine", Constraint: c.text("constraint")})
	if err != nil {
		return err
	}
	nodes := make([]node, 0, len(texts))
	for _, text := range texts {
		ad, err := classad.Parse(text)
		if err != nil {
			return problem(roost.Internal, "the ad of a node cannot be read: %v", err)
		}
		nodes = append(nodes, nodeOf(ad))
	}
	slices.SortFunc(nodes, func(a, b node) int { return compareNames(a.Name, b.Name) })
	c.whatIsDrained(nodes)
	c.whatIsSaid(nodes)
	if c.json() {
		return printJSON(c.stdout, document{"nodes": nodes})
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
	c.whatRuns(nodes)
	c.nodeTable(nodes).print(c.stdout, c.out)
	return nil
}

func nodeOf(ad *classad.Ad) node {
	text := func(name string) string { s, _ := ad.Str(name); return s }
	number := func(name string) float64 { f, _ := ad.Real(name); return f }
	whole := func(name string) int64 { return int64(number(name)) }
	pair := func(free, total string, unit roost.Bytes) amount {
		return amount{number(free) * float64(unit), number(total) * float64(unit)}
	}
	return node{
		Name: text(roost.AttrName), State: strings.ToLower(text(roost.AttrState)), Load: number(roost.AttrLoadAvg),
		Cpus: pair(roost.AttrCpus, roost.AttrTotalCpus, 1), GPUs: pair(roost.AttrGpus, roost.AttrTotalGpus, 1),
		Memory: pair(roost.AttrMemory, roost.AttrTotalMemory, roost.MiB), Disk: pair(roost.AttrDisk, roost.AttrTotalDisk, roost.KiB),
		Running: whole(roost.AttrNumRunning), Claims: whole(roost.AttrNumClaims), Arch: text(roost.AttrArch), OpSys: text(roost.AttrOpSys), Version: text(roost.AttrVersion),
		Devices: devicesOf(ad), Units: unitsOf(ad), Owner: text(roost.AttrOwnerBusyReason),
	}
}

// maxWhat bounds how many running tasks are looked at to say what a node does.
const maxWhat = 2000

// whatRuns fills in which jobs run where. It is a comfort: without an answer the column stays empty.
func (c *call) whatRuns(nodes []node) {
	found, missing, err := c.queryPool("", &wire.QueryRequest{Selection: &wire.Selection{States: []string{roost.Running.String(), roost.Suspended.String()}}, Tasks: true, Limit: maxWhat})
	if err != nil {
		return
	}
	c.tellSilent(missing)
	counts := map[string]map[string]int{}
	for _, s := range found {
		if counts[s.GetNode()] == nil {
			counts[s.GetNode()] = map[string]int{}
		}
		counts[s.GetNode()][printable(s.GetName()+" ("+s.GetOwner()+")")]++
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
		nodes[i].what = strings.Join(parts, ", ")
	}
}

// whatIsDrained marks the nodes that get no new tasks because somebody has drained them. Where nobody can be asked none is.
func (c *call) whatIsDrained(nodes []node) {
	var drains []entered[ledger.Drain]
	if c.shown(string(ledger.KindDrain), &drains) != nil {
		return
	}
	for _, d := range drains {
		i := slices.IndexFunc(nodes, func(n node) bool { return n.Name == d.Object.Node })
		if i >= 0 && d.Object.Holds(time.Now()) {
			nodes[i].State, nodes[i].Drain = "drained", cmp.Or(d.Object.Reason, "no reason was given")
		}
	}
}

// whatIsSaid fills in the comments of administrators. Where nobody can be asked there are none.
func (c *call) whatIsSaid(nodes []node) {
	comments, err := c.comments()
	if err != nil {
		return
	}
	for i := range nodes {
		nodes[i].Comment = comments[nodes[i].Name]
	}
}

func (c *call) nodeTable(nodes []node) *table {
	t := &table{columns: []column{
		{head: "NODE"}, {head: "STATE"}, {head: "CPUS FREE", right: true}, {head: "MEMORY FREE", right: true}, {head: "GPUS FREE", right: true},
		{head: "LOAD", right: true, spare: 2}, {head: "RUNNING", right: true, spare: 1}, {head: "WHAT", least: 10, spare: 3},
	}}
	for _, n := range nodes {
		gpus := ""
		if n.GPUs.Total > 0 {
			gpus = fmt.Sprintf("%g/%g", n.GPUs.Free, n.GPUs.Total)
		}
		t.add(cell{n.Name, ""}, cell{n.State, nodeColour(n.State)}, cell{fmt.Sprintf("%g/%g", n.Cpus.Free, n.Cpus.Total), ""},
			cell{sizes(n.Memory), ""}, cell{gpus, ""}, cell{fmt.Sprintf("%.2f", n.Load), ""}, cell{fmt.Sprint(n.Running), ""}, cell{n.does(), dim})
	}
	t.drop("GPUS FREE", "WHAT")
	return t
}

// does says what a node does, why it may get nothing more, and what administrators say of it.
func (n *node) does() string {
	var parts []string
	switch {
	case n.Drain != "":
		parts = append(parts, "drained: "+printable(n.Drain))
	case n.Owner != "":
		parts = append(parts, printable(n.Owner))
	}
	for _, more := range []string{printable(n.Comment), n.what} {
		if more != "" {
			parts = append(parts, more)
		}
	}
	return strings.Join(parts, "; ")
}

// sizes prints what is free of a memory in one unit.
func sizes(a amount) string {
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
