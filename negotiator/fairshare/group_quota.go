package fairshare

import (
	"cmp"
	"slices"
	"strings"
)

// AccountingGroup is an accounting group in one cycle. Groups form a tree:
// "physics.optics" is below "physics", and all are below the root, which has no name and
// contains everyone in no known group.
type AccountingGroup struct {
	Name string
	// cores; for a dynamic group the part, 0 to 1, of what its static siblings leave of
	// the parent's quota
	Quota          float64
	Dynamic        bool
	AcceptsSurplus bool    // it may use what others leave
	Requested      float64 // cores that its own submitters use and want, without groups below
}

// GroupAllocation is what a group may use in this cycle.
type GroupAllocation struct {
	Name      string  // "": the root
	Quota     float64 // cores of its own, without groups below, unless groups may be oversubscribed
	Allocated float64 // cores, 0 <= Allocated <= Requested: from its quota, and from what others leave
}

// DivideQuotas divides a pool of cores among groups by their quotas. It then divides what
// some leave among those that may have it (HTCondor's GroupEntry::hgq_assign_quotas,
// hgq_fairshare and hgq_allocate_surplus). root is what is requested outside of all
// groups. With oversubscription, static quotas apply even if they add up to more than
// there is (ALLOW_QUOTA_OVERSUBSCRIPTION). Negative numbers count as 0. The allocations
// are in the order of the groups, with the root's last.
func DivideQuotas(groups []AccountingGroup, pool, root float64, oversubscribe bool) []GroupAllocation {
	d := quotaDivision{oversubscribe: oversubscribe,
		root: &groupNode{AccountingGroup: AccountingGroup{Requested: max(0, root), AcceptsSurplus: true}}}
	nodes := d.buildTree(groups)
	d.assignQuotas(d.root, max(0, pool))
	d.allocateOwnQuotas(d.root)
	all := make([]GroupAllocation, len(nodes))
	for i, n := range nodes {
		all[i] = GroupAllocation{n.Name, n.quota, n.allocated}
	}
	return all
}

// NearestGroup returns the group of a sorted list that counts for submitters of the named
// group. It is that group, or the nearest known one above it, or "", the root.
func NearestGroup(sorted []string, name string) string {
	for name != "" {
		if _, ok := slices.BinarySearch(sorted, name); ok {
			return name
		}
		name = parentOf(name)
	}
	return ""
}

// parentOf returns the name of the parent of a group.
func parentOf(name string) string { return name[:max(0, strings.LastIndexByte(name, '.'))] }

type quotaDivision struct {
	oversubscribe bool
	root          *groupNode
}

// groupNode is a group during a division.
type groupNode struct {
	AccountingGroup
	children     []*groupNode
	quota        float64 // of the group alone
	subtree      float64 // of the group and all below it
	allocated    float64
	ownUnmet     float64 // what it still requests for itself
	subtreeUnmet float64 // what it and all groups below still request that may have surplus
}

// buildTree builds the tree, and returns its nodes in the order of the groups, with the
// root last.
func (d *quotaDivision) buildTree(groups []AccountingGroup) []*groupNode {
	nodes, byName, names := make([]*groupNode, len(groups)), map[string]*groupNode{"": d.root},
		make([]string, len(groups))
	for i, g := range groups {
		g.Quota, g.Requested = max(0, g.Quota), max(0, g.Requested)
		nodes[i] = &groupNode{AccountingGroup: g}
		byName[g.Name], names[i] = nodes[i], g.Name
	}
	slices.Sort(names)
	for _, n := range nodes {
		parent := byName[NearestGroup(names, parentOf(n.Name))]
		parent.children = append(parent.children, n)
	}
	for _, n := range append(nodes, d.root) {
		slices.SortFunc(n.children, func(a, b *groupNode) int { return cmp.Compare(a.Name, b.Name) })
	}
	return append(nodes, d.root)
}

// assignQuotas assigns a quota to a subtree. Static quotas of the children come first,
// scaled down if they exceed it. Dynamic ones share the rest, scaled down if they add up
// to more than 1.
func (d *quotaDivision) assignQuotas(n *groupNode, quota float64) {
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
		d.assignQuotas(c, q)
		given += q
	}
	n.quota = max(0, quota-given)
	if d.oversubscribe && n != d.root { // the root's quota is the whole pool, of which it has only the rest
		n.quota = quota
	}
}

// allocateOwnQuotas gives every group what it requests of its own quota. The rest moves
// up, and at each node to those below that may have it. It returns what is left of the
// subtree.
func (d *quotaDivision) allocateOwnQuotas(n *groupNode) (surplus float64) {
	n.allocated = min(n.Requested, n.quota)
	n.ownUnmet = n.Requested - n.allocated
	n.subtreeUnmet = n.ownUnmet
	surplus = n.quota - n.allocated
	for _, c := range n.children {
		surplus += d.allocateOwnQuotas(c)
		if c.AcceptsSurplus {
			n.subtreeUnmet += c.subtreeUnmet
		}
	}
	return d.spreadSurplus(n, surplus)
}

// spreadSurplus gives surplus to a group and its children as equals, by their quotas, and
// then to those below. It returns what is not wanted.
func (d *quotaDivision) spreadSurplus(n *groupNode, surplus float64) float64 {
	if surplus <= 0 || n.subtreeUnmet <= 0 {
		return max(0, surplus)
	}
	shares := make([]surplusPortion, 0, len(n.children)+1)
	for _, c := range n.children {
		if c.AcceptsSurplus {
			shares = append(shares, surplusPortion{weight: c.subtree, wanted: c.subtreeUnmet})
		} else {
			shares = append(shares, surplusPortion{})
		}
	}
	shares = append(shares, surplusPortion{weight: n.quota, wanted: n.ownUnmet})
	before := surplus
	if surplus >= n.subtreeUnmet {
		for i := range shares {
			shares[i].granted = shares[i].wanted
		}
		surplus -= n.subtreeUnmet
	} else {
		surplus = divideSurplus(shares, surplus, true)
		surplus = divideSurplus(shares, surplus, false) // to those without a quota
	}
	for i, c := range n.children {
		if shares[i].granted > 0 {
			d.spreadSurplus(c, shares[i].granted)
		}
	}
	mine := shares[len(n.children)].granted
	n.allocated += mine
	n.ownUnmet -= mine
	n.subtreeUnmet -= before - surplus
	return surplus
}

// surplusPortion is one recipient's part of a surplus.
type surplusPortion struct{ weight, wanted, granted float64 }

// divideSurplus divides a surplus by weight, or equally, among those that want more,
// repeatedly as some have enough.
func divideSurplus(all []surplusPortion, surplus float64, byWeight bool) float64 {
	const dust = 1e-6
	for surplus > 0 {
		sum := 0.0
		for _, p := range all {
			if p.wanted > p.granted {
				sum += p.weightOrOne(byWeight)
			}
		}
		if sum <= 0 {
			break
		}
		enough, given := false, 0.0
		for i := range all {
			p := &all[i]
			if p.wanted <= p.granted {
				continue
			}
			more := surplus * p.weightOrOne(byWeight) / sum
			if rest := p.wanted - p.granted; more >= rest {
				more, enough = rest, true
				p.granted = p.wanted
			} else {
				p.granted += more
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

func (p surplusPortion) weightOrOne(weight bool) float64 {
	if weight {
		return p.weight
	}
	return 1
}
