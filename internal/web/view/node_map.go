package view

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// NodeMap is the machines of the pool in groups, in the order of the bytes of the map.
type NodeMap struct {
	Version int        `json:"v"`
	By      string     `json:"by"`    // "rack", "class" or "none"
	Order   string     `json:"order"` // changes with the machines and their order
	Groups  []MapGroup `json:"groups"`
	Total   int        `json:"total"`

	Job, Owner string      `json:"-"` // whose tasks are marked
	Marked     int         `json:"-"` // machines that have some
	Query      string      `json:"-"` // of the addresses of bytes and names
	IsPast     bool        `json:"-"` // the page has bytes and names in itself, and they do not change
	nodes      []mapMember // in the order of the map
}

// MapGroup is one group of machines.
type MapGroup struct {
	Name   string         `json:"name"` // empty: those without the attribute
	Nodes  []string       `json:"nodes"`
	States map[string]int `json:"states"`
	Cores  ResourceStates `json:"cores"`
	GPUs   ResourceStates `json:"gpus"`
	Marked int            `json:"marked,omitempty"` // machines with tasks of the job or owner
}

// mapMember is a machine in the map.
type mapMember struct {
	*document.Node
	group  string
	marked bool
}

// The bytes of a machine: its state, and which part of its cores, memory and GPUs is
// held, from 0 to mapFull.
const (
	mapBytes  = 4
	mapFull   = 254
	mapNone   = 255  // it has nothing of the kind
	mapMarked = 0x80 // added to the state: it runs tasks of the job or owner that was asked for
)

// MapStates lists the states of a machine by their numbers in the map. How long an owner
// has been away is not among them.
func MapStates() []string {
	return []string{"other", "unclaimed", "claimed", "owner", "drained", "preempting", downState}
}

// Map shows the machines in groups.
func (p *Pool) Map(c *route.Call) (any, error) { return p.nodeMap(c) }

// MapBytes sends four bytes for each machine.
func (p *Pool) MapBytes(c *route.Call) error {
	m, err := p.nodeMap(c)
	if err != nil {
		return err
	}
	h := c.Writer.Header()
	h.Set("Roost-As-Of", c.AsOf.UTC().Format("2006-01-02T15:04:05.999999999Z07:00"))
	h.Set("Roost-Map-Order", m.Order)
	return c.WriteText(http.StatusOK, "application/octet-stream", m.bytes())
}

// nodeMap makes the map that a call asks for.
func (p *Pool) nodeMap(c *route.Call) (*NodeMap, error) {
	m, err := newNodeMap(c.QueryValue("by"))
	if err != nil {
		return nil, err
	}
	m.Job, m.Owner = c.QueryValue("job"), c.QueryValue("owner")
	marked, err := markedNodes(c, m.Job, m.Owner)
	if err != nil {
		return nil, err
	}
	s, err := p.snapshot(c)
	if err != nil {
		return nil, err
	}
	c.AsOf = s.at
	for _, nodes := range [][]poolNode{s.nodes, s.down} {
		for i := range nodes {
			m.add(&nodes[i].Node, marked[nodes[i].Name])
		}
	}
	m.addGroups()
	q := c.Request.URL.Query()
	m.Query = q.Encode()
	return m, nil
}

// newNodeMap returns a map without machines. Empty stands for racks.
func newNodeMap(by string) (*NodeMap, error) {
	m := &NodeMap{Version: document.Version, By: cmp.Or(by, "rack"), Groups: []MapGroup{}}
	if !slices.Contains([]string{"rack", "class", "none"}, m.By) {
		return nil, fmt.Errorf("by: %w: there are rack, class and none", roost.Invalid)
	}
	return m, nil
}

// add adds a machine.
func (m *NodeMap) add(n *document.Node, marked bool) {
	group := map[string]string{"rack": n.Rack, "class": n.Class}[m.By]
	m.nodes = append(m.nodes, mapMember{n, group, marked})
}

// maxMarking bounds the tasks whose machines are marked.
const maxMarking = 20_000

// markedNodes returns the names of the machines that run tasks of a job or an owner.
func markedNodes(c *route.Call, job, owner string) (map[string]bool, error) {
	if job == "" && owner == "" {
		return nil, nil
	}
	if len(job) > maxID || len(owner) > maxID {
		return nil, fmt.Errorf("job, owner: %w: it has more than %d characters", roost.Invalid, maxID)
	}
	sel := &wire.Selection{States: []string{roost.Starting.String(), roost.Running.String(),
		roost.Suspended.String(), roost.Exiting.String()}}
	if job != "" {
		sel.Selectors = []string{job}
	}
	if owner != "" {
		sel.Constraint = roost.AttrOwner + " == " + classad.StringValue(owner).String()
	}
	marked := map[string]bool{}
	query := &wire.QueryRequest{Selection: sel, Tasks: true, Limit: maxMarking}
	_, err := queryPool(c, &wire.PoolQuery{Query: query}, func(t *wire.JobStatus) error {
		marked[t.GetNode()] = true
		return nil
	})
	return marked, err
}

// addGroups orders the machines, and sums them up by group.
func (m *NodeMap) addGroups() {
	slices.SortStableFunc(m.nodes, func(a, b mapMember) int {
		return cmp.Or(document.CompareNames(a.group, b.group), document.CompareNames(a.Name, b.Name))
	})
	order := sha256.New()
	for i := range m.nodes {
		n := &m.nodes[i]
		if i == 0 || n.group != m.nodes[i-1].group {
			m.Groups = append(m.Groups, MapGroup{Name: n.group, States: map[string]int{}})
		}
		g := &m.Groups[len(m.Groups)-1]
		g.Nodes = append(g.Nodes, n.Name)
		g.States[n.State]++
		if n.State == downState {
			g.Cores.Down += n.Cpus.Total
			g.GPUs.Down += n.GPUs.Total
		} else {
			g.Cores.add(n.Node, n.Cpus)
			g.GPUs.add(n.Node, n.GPUs)
		}
		if n.marked {
			g.Marked++
			m.Marked++
		}
		fmt.Fprintf(order, "%q %q\n", n.group, n.Name)
	}
	m.Total, m.Order = len(m.nodes), hex.EncodeToString(order.Sum(nil)[:8])
}

// Encoded returns the bytes of the map for an attribute of a page. A page of a past
// instant has them in itself, with the names: to ask again would simulate again.
func (m *NodeMap) Encoded() string { return base64.StdEncoding.EncodeToString(m.bytes()) }

// Names returns the names of the machines by group, as JSON for an attribute of a page.
func (m *NodeMap) Names() (string, error) {
	type group struct {
		Name  string   `json:"name"`
		Nodes []string `json:"nodes"`
	}
	all := make([]group, len(m.Groups))
	for i := range m.Groups {
		all[i] = group{m.Groups[i].Name, m.Groups[i].Nodes}
	}
	text, err := json.Marshal(all)
	return string(text), err
}

// bytes returns the machines as a script draws them.
func (m *NodeMap) bytes() []byte {
	all := make([]byte, 0, mapBytes*len(m.nodes))
	for i := range m.nodes {
		n := &m.nodes[i]
		state := byte(max(slices.Index(MapStates(), n.State), 0))
		if n.marked {
			state |= mapMarked
		}
		all = append(all, state, heldByte(n.Cpus), heldByte(n.Memory), heldByte(n.GPUs))
	}
	return all
}

// heldByte returns which part of an amount is held.
func heldByte(a document.ResourceAmount) byte {
	if a.Total <= 0 {
		return mapNone
	}
	return byte(min(max(1-a.Free/a.Total, 0), 1)*mapFull + .5)
}
