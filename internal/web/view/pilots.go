package view

import (
	"cmp"
	"slices"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
)

// PilotList is a part of the pilots, by name, and what all that the filter admits are
// together.
type PilotList struct {
	Version int             `json:"v"`
	Pilots  []document.Node `json:"pilots"`
	Total   int             `json:"total"` // that the filter admits
	Groups  []PilotGroup    `json:"groups"`
	Next    string          `json:"next,omitempty"`

	Filter PilotFilter `json:"-"`
}

// PilotGroup is the pilots of a user from one provider.
type PilotGroup struct {
	Owner    string                  `json:"owner"`
	Provider string                  `json:"provider"` // empty: it does not say
	Pilots   int                     `json:"pilots"`
	Claimed  int                     `json:"claimed"`
	Cpus     document.ResourceAmount `json:"cpus"`
	GPUs     document.ResourceAmount `json:"gpus"`
	Running  int64                   `json:"running"`
	Next     string                  `json:"next_end,omitempty"` // when the first of them ends
}

// PilotFilter is what the address of a list of pilots says.
type PilotFilter struct {
	All                    bool
	Owner, Provider, State string // empty: any
	User                   string // who asks
	After                  string
	Limit                  int
}

// admits reports whether a pilot is in the list. The owners of pilots are users anywhere,
// or at one submit node.
func (f *PilotFilter) admits(n *document.Node) bool {
	owner := cmp.Or(f.Owner, f.User)
	if f.All {
		owner = f.Owner
	}
	if owner != "" && n.Pilot.Owner != owner {
		parsed, err := roost.ParsePilotOwner(n.Pilot.Owner)
		if err != nil || parsed.User != owner {
			return false
		}
	}
	return (f.Provider == "" || n.Pilot.Provider == f.Provider) && (f.State == "" || n.State == f.State)
}

// maxPilotGroups bounds the groups. Who makes up names of providers gets no longer page.
const maxPilotGroups = 200

// Pilots returns the view of the user's pilots, or of all.
func (p *Pool) Pilots(c *route.Call) (any, error) {
	limit, err := limitOf(c)
	if err != nil {
		return nil, err
	}
	f := PilotFilter{All: c.QueryValue("all") == "1", Owner: c.QueryValue("owner"), User: c.Session.User,
		Provider: c.QueryValue("provider"), State: c.QueryValue("state"), After: c.QueryValue("after"), Limit: limit}
	s, err := p.snapshot(c)
	if err != nil {
		return nil, err
	}
	c.AsOf = s.at
	l := PilotList{Version: document.Version, Pilots: []document.Node{}, Groups: []PilotGroup{}, Filter: f}
	groups := map[[2]string]*PilotGroup{}
	for i := range s.nodes {
		n := &s.nodes[i].Node
		if n.Pilot == nil || !f.admits(n) {
			continue
		}
		l.Total++
		addToPilotGroup(groups, n)
		switch {
		case f.After != "" && document.CompareNames(n.Name, f.After) <= 0:
		case len(l.Pilots) < limit:
			l.Pilots = append(l.Pilots, *n)
		default:
			l.Next = l.Pilots[limit-1].Name
		}
	}
	for _, g := range groups {
		l.Groups = append(l.Groups, *g)
	}
	slices.SortFunc(l.Groups, func(a, b PilotGroup) int {
		return cmp.Or(cmp.Compare(a.Owner, b.Owner), cmp.Compare(a.Provider, b.Provider))
	})
	c.LinkNext("after", l.Next)
	return l, nil
}

// addToPilotGroup counts a pilot in its group.
func addToPilotGroup(groups map[[2]string]*PilotGroup, n *document.Node) {
	key := [2]string{n.Pilot.Owner, n.Pilot.Provider}
	if groups[key] == nil && len(groups) >= maxPilotGroups {
		key[1] = "" // with those that name no provider
	}
	g := groups[key]
	if g == nil {
		if len(groups) >= 2*maxPilotGroups {
			return
		}
		g = &PilotGroup{Owner: key[0], Provider: key[1]}
		groups[key] = g
	}
	g.Pilots++
	if n.State == "claimed" {
		g.Claimed++
	}
	add := func(to *document.ResourceAmount, a document.ResourceAmount) {
		to.Free, to.Total = to.Free+a.Free, to.Total+a.Total
	}
	add(&g.Cpus, n.Cpus)
	add(&g.GPUs, n.GPUs)
	g.Running += n.Running
	if u := n.Pilot.Until; u != "" && (g.Next == "" || u < g.Next) {
		g.Next = u
	}
}
