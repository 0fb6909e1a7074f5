package classad

import (
	"cmp"
	"slices"
)

// conflicts returns the minimal sets of conjuncts that no row meets.
func (x *explanationBuilder) conflicts(rows int) []ConjunctConflict {
	var list []ConjunctConflict
	for i, n := range x.entries {
		if n.Excluded() == rows {
			list = append(list, ConjunctConflict{Conjuncts: []int{i}})
		}
	}
	pairs := x.entries[:min(len(x.entries), maxPairConjuncts)]
	for i, a := range pairs {
		for j, b := range pairs[:i] {
			always := a.test.contradicts(&b.test)
			if always || a.Excluded() < rows && b.Excluded() < rows && x.conflictTogether(rows, a, b) {
				list = append(list, ConjunctConflict{[]int{j, i}, always})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b ConjunctConflict) int { return b.sortKey() - a.sortKey() })
	if len(list) == 0 {
		list = append(list, x.minimalConflict(rows))
	}
	return list
}

// sortKey orders conflicts by how much they explain: first a conjunct that no row meets,
// then contradictions.
func (c *ConjunctConflict) sortKey() int {
	switch {
	case len(c.Conjuncts) == 1:
		return 2
	case c.Contradiction:
		return 1
	}
	return 0
}

// conflictTogether reports whether no row meets all of some conjuncts.
func (x *explanationBuilder) conflictTogether(rows int, list ...*conjunctEntry) bool {
	excluded := 0
	for w := range x.rows/64 + 1 {
		word := uint64(0)
		for _, n := range list {
			word |= n.failing[w]
		}
		excluded += onesCount(word)
	}
	return excluded == rows
}

// minimalConflict returns a set of conjuncts that no row meets and that has no smaller
// such subset. It tries to leave out first the conjuncts that exclude least.
func (x *explanationBuilder) minimalConflict(rows int) ConjunctConflict {
	order := make([]int, len(x.entries))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(x.entries[a].Excluded(), x.entries[b].Excluded())
	})
	remaining := slices.Clone(x.entries)
	for _, i := range order {
		rest := slices.DeleteFunc(slices.Clone(remaining), func(n *conjunctEntry) bool { return n == x.entries[i] })
		if x.conflictTogether(rows, rest...) {
			remaining = rest
		}
	}
	var c ConjunctConflict
	for i, n := range x.entries {
		if slices.Contains(remaining, n) {
			c.Conjuncts = append(c.Conjuncts, i)
		}
	}
	return c
}

// contradicts reports whether no value passes both tests. Integers count as reals, which
// another row may have: between 5 and 6 there is 5.5.
func (a *plainTest) contradicts(b *plainTest) bool {
	if !a.ok || !b.ok || a.ref.col != b.ref.col || a.ref.param != b.ref.param || a.class != b.class {
		return false
	}
	lowA, highA := a.interval()
	lowB, highB := b.interval()
	low, high := max(lowA, lowB), min(highA, highB)
	return low > high || low == high && (a.excludesEnd(low) || b.excludesEnd(low))
}

// interval returns the lowest and the highest key that can pass a test, inclusive.
func (a *plainTest) interval() (low, high uint64) {
	low, high = 0, ^uint64(0)
	if a.op == opEqual || a.op == opGreater || a.op == opGreaterEqual {
		low = a.key
	}
	if a.op == opEqual || a.op == opLess || a.op == opLessEqual {
		high = a.key
	}
	return low, high
}

// excludesEnd reports whether an end of its interval does not pass a test.
func (a *plainTest) excludesEnd(key uint64) bool {
	return a.key == key && (a.op == opLess || a.op == opGreater)
}
