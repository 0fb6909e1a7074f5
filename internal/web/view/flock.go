package view

import (
	"cmp"
	"slices"
	"strings"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// Flock is what this pool lends to other pools, and what its users use there.
type Flock struct {
	Version   int             `json:"v"`
	Machines  int             `json:"machines"` // that accept tasks of guests
	Cores     float64         `json:"cores"`    // of these machines
	FreeCores float64         `json:"free_cores"`
	Guests    []GuestPool     `json:"guests"`    // by name
	Elsewhere []ElsewhereUser `json:"elsewhere"` // by name
}

// GuestPool is another pool whose users have used this one.
type GuestPool struct {
	Pool      string      `json:"pool"`
	Cores     float64     `json:"cores"` // in use now, by fair share
	CoreHours float64     `json:"core_hours"`
	Bound     *float64    `json:"share_cores,omitempty"` // the most cores that it may have at a time
	IsWaiting bool        `json:"waits"`
	Users     []GuestUser `json:"users"`
}

// GuestUser is a user of another pool.
type GuestUser struct {
	User      string  `json:"user"` // as in "ann@chemistry"
	Cores     float64 `json:"cores"`
	CoreHours float64 `json:"core_hours"`
	IsWaiting bool    `json:"waits"`
}

// ElsewhereUser is a user of this pool with tasks in other pools, now or before.
type ElsewhereUser struct {
	Name      string  `json:"name"`
	Cores     float64 `json:"cores"`
	CoreHours float64 `json:"core_hours"`
}

// Flock returns the view of what pools lend to each other.
func (p *Pool) Flock(c *route.Call) (any, error) {
	s, err := p.snapshot(c)
	if err != nil {
		return nil, err
	}
	c.AsOf = s.at
	f := Flock{Version: document.Version, Guests: []GuestPool{}, Elsewhere: []ElsewhereUser{}}
	for i := range s.nodes {
		if n := &s.nodes[i]; n.acceptsGuests {
			f.Machines, f.Cores, f.FreeCores = f.Machines+1, f.Cores+n.Cpus.Total, f.FreeCores+n.Cpus.Free
		}
	}
	var shares ledger.ShareReport
	if err := showCell(c, "shares", &shares); err != nil {
		return nil, err
	}
	var groups []AttributedObject[ledger.AccountingGroup]
	if err := showCell(c, string(ledger.KindGroup), &groups); err != nil {
		return nil, err
	}
	f.addShares(shares.Submitters)
	for i := range f.Guests {
		for _, g := range groups {
			if strings.EqualFold(g.Name, ledger.PeerGroupPrefix+f.Guests[i].Pool) && g.Object.Cores != nil {
				bound := float64(*g.Object.Cores) / 1000
				f.Guests[i].Bound = &bound
			}
		}
	}
	return f, nil
}

// addShares sorts submitters into guests and users of this pool.
func (f *Flock) addShares(all []ledger.SubmitterUsage) {
	guests := map[string]*GuestPool{}
	for _, u := range all {
		if u.CoresElsewhere > 0 || u.CoreHoursElsewhere > 0 {
			f.Elsewhere = append(f.Elsewhere, ElsewhereUser{u.Name, u.CoresElsewhere, u.CoreHoursElsewhere})
		}
		pool, ok := strings.CutPrefix(u.Group, ledger.PeerGroupPrefix)
		if !ok {
			continue
		}
		g := guests[pool]
		if g == nil {
			g = &GuestPool{Pool: pool}
			guests[pool] = g
		}
		g.Cores, g.CoreHours, g.IsWaiting = g.Cores+u.Cores, g.CoreHours+u.CoreHours, g.IsWaiting || u.IsWaiting
		g.Users = append(g.Users, GuestUser{u.User, u.Cores, u.CoreHours, u.IsWaiting})
	}
	for _, g := range guests {
		slices.SortFunc(g.Users, func(a, b GuestUser) int { return strings.Compare(a.User, b.User) })
		f.Guests = append(f.Guests, *g)
	}
	slices.SortFunc(f.Guests, func(a, b GuestPool) int { return strings.Compare(a.Pool, b.Pool) })
	slices.SortFunc(f.Elsewhere, func(a, b ElsewhereUser) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.CoreHours, b.CoreHours))
	})
}
