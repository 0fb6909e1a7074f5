package share

import (
	"cmp"
	"slices"
	"strings"
)

// Group is an accounting group as one cycle sees it. Groups make a tree: "physics.optics" lies below "physics", and all lie below the root,
// which has no name and to which everybody belongs who is in no group that is known.
type Group struct {
	Name      string
	Quota     float64 // cores; of a dynamic one the part, 0 to 1, of what the static groups beside it leave of its parent's
	Dynamic   bool
	Surplus   bool    // it may have what others leave
	Requested float64 // cores that its own submitters use and want, without those of the groups below it
}

// Allocation is what a group may use in this cycle.
type Allocation struct {
	Name      string  // "": the root
	Quota     float64 // cores, its own: without those of the groups below it, unless groups may be oversubscribed
	Allocated float64 // cores, 0 <= Allocated <= Requested: of its quota, and of what others leave
}

// Divide divides a pool of so many cores among groups by their quotas, and what some leave among those that may have it (HTCondor's
// GroupEntry::hgq_assign_quotas, hgq_fairshare and hgq_allocate_surplus). root is what is requested outside of all groups. With oversubscription
// static quotas hold even if they add up to more than there is (ALLOW_QUOTA_OVERSUBSCRIPTION). Negative numbers count as 0. The allocations come
// in the order of the groups, the root's last.
func Divide(groups []Group, pool, root float64, oversubscribe bool) []Allocation {
	d := division{oversubscribe: oversubscribe, root: &node{Group: Group{Requested: max(0, root), Surplus: true}}}
	nodes := d.grow(groups)
	d.assign(d.root, max(0, pool))
	d.share(d.root)
	all := make([]Allocation, len(nodes))
	for i, n := range nodes {
		all[i] = Allocation{n.Name, n.quota, n.allocated}
	}
	return all
}

// Known is the group among those of a sorted list that a submitter of the named group counts for: itself, or the nearest above it that is
// known, or "", the root.
func Known(sorted []string, name string) string {
	for name != "" {
		if _, ok := slices.BinarySearch(sorted, name); ok {
			return name
		}
		name = above(name)
	}
	return ""
}

// above is the name of the group that the named one lies below.
func above(name string) string { return name[:max(0, strings.LastIndexByte(name, '.'))] }

type division struct {
	oversubscribe bool
	root          *node
}

// node is a group in the making of a division.
type node struct {
	Group
	children  []*node
	quota     float64 // of itself
	subtree   float64 // of itself and all below it
	allocated float64
	own       float64 // that it still requests for itself
	all       float64 // that it still requests for itself and all below it that may have surplus
}

// grow makes the tree, and returns its nodes in the order of the groups, the root last.
func (d *division) grow(groups []Group) []*node {
	nodes, byName, names := make([]*node, len(groups)), map[string]*node{"": d.root}, make([]string, len(groups))
	for i, g := range groups {
		g.Quota, g.Requested = max(0, g.Quota), max(0, g.Requested)
		nodes[i] = &node{Group: g}
		byName[g.Name], names[i] = nodes[i], g.Name
	}
	slices.Sort(names)
	for _, n := range nodes {
		parent := byName[Known(names, above(n.Name))]
		parent.children = append(parent.children, n)
	}
	for _, n := range append(nodes, d.root) {
		slices.SortFunc(n.children, func(a, b *node) int { return cmp.Compare(a.Name, b.Name) })
	}
	return append(nodes, d.root)
}

// assign gives a subtree its quota: static ones of the children come first, cut down alike if they are more than there is, and dynamic ones
// share the rest, cut down if they add up to more than 1.
func (d *division) assign(n *node, quota float64) {
	if quota <= 0 {
		return
	}
	n.subtree = quota
	static, dynamic := 0.0, 0.0
	for _, c := range n.children {
		if c.Dynamic {
			dynamic += c.Quota
		} else {
			static += c.Quota
		}
	}
	forStatic := static
	if !d.oversubscribe {
		forStatic = min(static, quota)
	}
	forDynamic, given := max(0, quota-forStatic), 0.0
	for _, c := range n.children {
		q := 0.0
		switch {
		case c.Dynamic:
			q = c.Quota * forDynamic / max(dynamic, 1)
		case static > 0:
			q = c.Quota * forStatic / static
		}
		d.assign(c, q)
		given += q
	}
	n.quota = max(0, quota-given)
	if d.oversubscribe && n != d.root { // the root's quota is the whole pool: it has only what is left
		n.quota = quota
	}
}

// share gives every group what it requests of its own quota, then lets what is left flow up, and at each node to those below that may have it. It
// returns what is left of the subtree.
func (d *division) share(n *node) (surplus float64) {
	n.allocated = min(n.Requested, n.quota)
	n.own = n.Requested - n.allocated
	n.all = n.own
	surplus = n.quota - n.allocated
	for _, c := range n.children {
		surplus += d.share(c)
		if c.Surplus {
			n.all += c.all
		}
	}
	return d.spread(n, surplus)
}

// spread hands surplus to a group and its children, as equals, by their quotas, and then down. It returns what nobody wants.
func (d *division) spread(n *node, surplus float64) float64 {
	if surplus <= 0 || n.all <= 0 {
		return max(0, surplus)
	}
	shares := make([]portion, 0, len(n.children)+1)
	for _, c := range n.children {
		if c.Surplus {
			shares = append(shares, portion{weight: c.subtree, wants: c.all})
		} else {
			shares = append(shares, portion{})
		}
	}
	shares = append(shares, portion{weight: n.quota, wants: n.own})
	before := surplus
	if surplus >= n.all {
		for i := range shares {
			shares[i].gets = shares[i].wants
		}
		surplus -= n.all
	} else {
		surplus = portions(shares, surplus, true)
		surplus = portions(shares, surplus, false) // to those without a quota
	}
	for i, c := range n.children {
		if shares[i].gets > 0 {
			d.spread(c, shares[i].gets)
		}
	}
	mine := shares[len(n.children)].gets
	n.allocated += mine
	n.own -= mine
	n.all -= before - surplus
	return surplus
}

// portion is what one of several gets of a surplus.
type portion struct{ weight, wants, gets float64 }

// portions divides a surplus by weight, or alike, among those that want more, again and again as some have enough.
func portions(all []portion, surplus float64, byWeight bool) float64 {
	const dust = 1e-6
	for surplus > 0 {
		sum := 0.0
		for _, p := range all {
			if p.wants > p.gets {
				sum += p.by(byWeight)
			}
		}
		if sum <= 0 {
			break
		}
		enough, given := false, 0.0
		for i := range all {
			p := &all[i]
			if p.wants <= p.gets {
				continue
			}
			more := surplus * p.by(byWeight) / sum
			if rest := p.wants - p.gets; more >= rest {
				more, enough = rest, true
				p.gets = p.wants
			} else {
				p.gets += more
			}
			given += more
		}
		if surplus -= given; surplus < dust {
			surplus = 0
		}
		if !enough {
			break
		}
	}
	return surplus
}

func (p portion) by(weight bool) float64 {
	if weight {
		return p.weight
	}
	return 1
}
