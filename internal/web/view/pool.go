package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// Pool holds the machines of the pool as they were a moment ago. Their ads are public to
// every user, so that what one user's login has read may be shown to another. Naively
// each page would read all of them: 10,000 machines take 20 MB and a second.
type Pool struct {
	mu      sync.Mutex
	reading chan struct{} // closed when the present reading is over; nil: there is none
	last    poolSnapshot
}

// poolSnapshot is one reading.
type poolSnapshot struct {
	at    time.Time
	took  time.Duration
	nodes []document.Node // by name
	err   error
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

// freshFor returns how long a snapshot is fresh.
func (s *poolSnapshot) freshFor() time.Duration {
	return min(max(poolFresh, readShare*s.took), maxPoolFresh)
}

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
	p.last, p.reading = next, nil
	close(done)
}

// maxNodes bounds the machines that are shown.
const maxNodes = 100_000

// nodeAttributes are the attributes of an ad that a list needs.
func nodeAttributes() []string {
	return []string{roost.AttrName, roost.AttrState, roost.AttrLoadAvg, roost.AttrCpus, roost.AttrTotalCpus,
		roost.AttrGpus, roost.AttrTotalGpus, roost.AttrMemory, roost.AttrTotalMemory, roost.AttrDisk,
		roost.AttrTotalDisk, roost.AttrNumRunning, roost.AttrNumClaims, roost.AttrArch, roost.AttrOpSys,
		roost.AttrVersion, roost.AttrOwnerBusyReason}
}

func readPool(c *route.Call) poolSnapshot {
	s := poolSnapshot{at: time.Now()}
	s.err = eachNode(c, &wire.AdQuery{Type: "Machine", Projection: nodeAttributes(), Limit: maxNodes},
		func(n document.Node) { s.nodes = append(s.nodes, n) })
	slices.SortFunc(s.nodes, func(a, b document.Node) int { return document.CompareNames(a.Name, b.Name) })
	if s.err == nil {
		s.markDrains(c)
	}
	s.took = time.Since(s.at)
	return s
}

// eachNode calls f with the machines that a query finds.
func eachNode(c *route.Call, q *wire.AdQuery, f func(document.Node)) error {
	return ask(c, func(ctx context.Context, schedd wire.ScheddClient) error {
		stream, err := schedd.Ads(ctx, q)
		return drain(stream, err, func(text *wire.AdText) error {
			ad, err := classad.Parse(text.GetAd())
			if err == nil {
				f(document.NodeOf(ad))
			}
			return nil // one ad that makes no sense hides no others
		})
	})
}

// markDrains marks what administrators say of machines. Where no negotiator answers, none
// is marked.
func (s *poolSnapshot) markDrains(c *route.Call) {
	at := make(map[string]*document.Node, len(s.nodes))
	for i := range s.nodes {
		at[s.nodes[i].Name] = &s.nodes[i]
	}
	var drains []AttributedObject[ledger.MachineDrain]
	if showCell(c, string(ledger.KindDrain), &drains) == nil {
		for _, d := range drains {
			if n := at[d.Object.Node]; n != nil && d.Object.Contains(s.at) {
				n.State, n.Drain = "drained", cmp.Or(d.Object.Reason, "no reason was given")
			}
		}
	}
	var comments []AttributedObject[ledger.MachineComment]
	if showCell(c, string(ledger.KindComment), &comments) == nil {
		for _, m := range comments {
			if n := at[m.Object.Node]; n != nil {
				n.Comment = m.Object.Text
			}
		}
	}
}

// NodeList is a part of the machines, by name.
type NodeList struct {
	Version int             `json:"v"`
	Nodes   []document.Node `json:"nodes"`
	Total   int             `json:"total"` // that the filter admits
	Next    string          `json:"next,omitempty"`

	Filter NodeFilter `json:"-"`
}

// NodeFilter is what the address of a list of machines says.
type NodeFilter struct {
	State, Search, After string
	Limit                int
}

// Nodes returns the view of the machines.
func (p *Pool) Nodes(c *route.Call) (any, error) {
	limit, err := limitOf(c)
	if err != nil {
		return nil, err
	}
	f := NodeFilter{c.QueryValue("state"), strings.ToLower(c.QueryValue("q")), c.QueryValue("after"), limit}
	s, err := p.snapshot(c)
	if err != nil {
		return nil, err
	}
	c.AsOf = s.at
	l := NodeList{Version: document.Version, Nodes: []document.Node{}, Filter: f}
	for _, n := range s.nodes {
		if f.State != "" && n.State != f.State || !strings.Contains(strings.ToLower(n.Name), f.Search) {
			continue
		}
		l.Total++
		if f.After != "" && document.CompareNames(n.Name, f.After) <= 0 {
			continue
		}
		if len(l.Nodes) < limit {
			l.Nodes = append(l.Nodes, n)
		} else {
			l.Next = l.Nodes[limit-1].Name
		}
	}
	return l, nil
}

// NodeDetail is a machine and what runs there.
type NodeDetail struct {
	Version     int            `json:"v"`
	Node        document.Node  `json:"node"`
	Tasks       []document.Job `json:"tasks"`
	Unreachable []Unreachable  `json:"unreachable,omitempty"`
}

// maxNodeTasks bounds the tasks of one machine that are shown.
const maxNodeTasks = 2000

// Node returns the view of one machine.
func (p *Pool) Node(c *route.Call) (any, error) {
	name := c.PathValue("node")
	d := NodeDetail{Version: document.Version, Tasks: []document.Job{}}
	s, err := p.snapshot(c)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(s.nodes, func(n document.Node) bool { return strings.EqualFold(n.Name, name) })
	if i < 0 {
		return nil, fmt.Errorf("node %.80q: %w: there is none of that name; see roost nodes", name, roost.NotFound)
	}
	d.Node = s.nodes[i]
	constraint := roost.AttrName + " == " + classad.StringValue(d.Node.Name).String()
	if err := eachNode(c, &wire.AdQuery{Type: "Machine", Constraint: constraint, Limit: 1}, func(n document.Node) {
		n.State, n.Drain, n.Comment = d.Node.State, d.Node.Drain, d.Node.Comment
		d.Node = n
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
