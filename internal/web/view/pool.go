package view

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// Pool holds the machines of the pool as they were a moment ago. Their ads are public to
// every user, so that what one user's login has read may be shown to another. Naively
// each page would read all of them: 10,000 machines take 20 MB and a second.
type Pool struct {
	mu      sync.Mutex
	reading chan struct{} // closed when the present reading is over; nil: there is none
	last    poolSnapshot
	// machines that earlier readings had, by name: they are down, or were removed
	gone map[string]goneNode
}

// How old a snapshot may be: one that is no longer fresh is read anew, and shown
// meanwhile until poolStale.
const (
	poolFresh    = time.Second
	maxPoolFresh = 10 * time.Second
	poolStale    = 15 * time.Second
	poolTimeout  = 10 * time.Second
)

// readShare is how many times as long as its reading took a snapshot is fresh at least.
// So the pages of a large pool cost its daemons no more than those of a small one.
const readShare = 10

// snapshot returns the machines, and reads them if need be.
func (p *Pool) snapshot(c *route.Call) (poolSnapshot, error) {
	p.mu.Lock()
	last, age, wait := p.last, time.Since(p.last.at), p.reading
	if wait == nil && (last.err != nil || age >= last.freshFor()) {
		wait = make(chan struct{})
		p.reading = wait
		go p.read(c, wait)
	}
	p.mu.Unlock()
	if last.err == nil && age < poolStale {
		return last, nil
	}
	select {
	case <-wait:
	case <-c.Context().Done():
		return last, c.Context().Err()
	}
	p.mu.Lock()
	last = p.last
	p.mu.Unlock()
	if last.err != nil { // it may be that of another user's login, which is over
		last = readPool(c)
	}
	return last, last.err
}

// read reads the machines with the login of a call, which may be over before.
func (p *Pool) read(c *route.Call, done chan struct{}) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), poolTimeout)
	defer cancel()
	own := *c
	own.Request = c.Request.WithContext(ctx)
	next := readPool(&own)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.noteGone(&next)
	p.last, p.reading = next, nil
	close(done)
}

// NodeList is a part of the machines, by name.
type NodeList struct {
	Version int             `json:"v"`
	Nodes   []document.Node `json:"nodes"`
	Total   int             `json:"total"` // that the filter admits
	Next    string          `json:"next,omitempty"`

	Filter NodeFilter `json:"-"`
	Layout ListLayout `json:"-"`
}

// NodeFilter is what the address of a list of machines says.
type NodeFilter struct {
	State, Search, After string
	Rack, Class          string // empty: any
	Limit                int
}

// admits reports whether a machine is in the list. The search is in lower case.
func (f *NodeFilter) admits(n *poolNode) bool {
	return (f.State == "" || n.State == f.State) && (f.Rack == "" || n.Rack == f.Rack) &&
		(f.Class == "" || n.Class == f.Class) && strings.Contains(strings.ToLower(n.Name), f.Search)
}

// Nodes returns the view of the machines.
func (p *Pool) Nodes(c *route.Call) (any, error) {
	limit, err := limitOf(c)
	if err != nil {
		return nil, err
	}
	f := NodeFilter{State: c.QueryValue("state"), Search: strings.ToLower(c.QueryValue("q")),
		After: c.QueryValue("after"), Rack: c.QueryValue("rack"), Class: c.QueryValue("class"), Limit: limit}
	s, err := p.snapshot(c)
	if err != nil {
		return nil, err
	}
	c.AsOf = s.at
	l := NodeList{Version: document.Version, Nodes: []document.Node{}, Filter: f}
	var by *rowSort[document.Node]
	if l.Layout, by, err = layoutOf(c, nodeColumns(), func(n *document.Node) string { return n.Name }); err != nil {
		return nil, err
	}
	if by == nil {
		l.addByName(s.nodes)
	} else if err = l.addSorted(s.nodes, by); err != nil {
		return nil, err
	}
	c.LinkNext("after", l.Next)
	return l, nil
}

// addByName fills in the part of the machines after a name.
func (l *NodeList) addByName(nodes []poolNode) {
	f := &l.Filter
	for _, n := range nodes {
		if !f.admits(&n) {
			continue
		}
		l.Total++
		if f.After != "" && document.CompareNames(n.Name, f.After) <= 0 {
			continue
		}
		if len(l.Nodes) < f.Limit {
			l.Nodes = append(l.Nodes, n.Node)
		} else {
			l.Next = l.Nodes[f.Limit-1].Name
		}
	}
}

// addSorted fills in a part of the machines, sorted by a column.
func (l *NodeList) addSorted(nodes []poolNode, by *rowSort[document.Node]) error {
	if err := by.begin(l.Filter.Limit, l.Filter.After); err != nil {
		return err
	}
	for i := range nodes {
		if l.Filter.admits(&nodes[i]) {
			l.Total++
			by.add(nodes[i].Node)
		}
	}
	l.Nodes, l.Next = by.rows()
	return nil
}

// NodeDetail is a machine and what runs there.
type NodeDetail struct {
	Version     int            `json:"v"`
	Node        document.Node  `json:"node"`
	Drained     *DrainMark     `json:"drained,omitempty"` // of a node that is drained
	Tasks       []document.Job `json:"tasks"`
	Unreachable []Unreachable  `json:"unreachable,omitempty"`
}

// DrainMark is who drained a node, and when.
type DrainMark struct {
	By string    `json:"by"`
	At time.Time `json:"at"`
}

// maxNodeTasks bounds the tasks of one machine that are shown.
const maxNodeTasks = 2000

// Node returns the view of one machine.
func (p *Pool) Node(c *route.Call) (any, error) {
	d := NodeDetail{Version: document.Version, Tasks: []document.Job{}}
	s, err := p.snapshot(c)
	if err != nil {
		return nil, err
	}
	i, err := s.indexOf(c.PathValue("node"))
	if err != nil {
		return nil, err
	}
	d.Node, d.Drained = s.nodes[i].Node, s.nodes[i].drained
	constraint := roost.AttrName + " == " + classad.StringValue(d.Node.Name).String()
	if err := eachNode(c, &wire.AdQuery{Type: "Machine", Constraint: constraint, Limit: 1}, func(n poolNode) {
		n.State, n.Drain, n.Comment = d.Node.State, d.Node.Drain, d.Node.Comment
		d.Node = n.Node
	}); err != nil {
		return nil, err
	}
	query := &wire.QueryRequest{Node: d.Node.Name, Tasks: true, Limit: maxNodeTasks}
	d.Unreachable, err = queryPool(c, &wire.PoolQuery{Query: query}, func(task *wire.JobStatus) error {
		d.Tasks = append(d.Tasks, document.JobOf(task, true))
		return nil
	})
	return d, err
}
