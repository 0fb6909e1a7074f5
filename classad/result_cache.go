package classad

// resultCache caches the truth of an expression that could not be compiled, by the cells
// on which it depends. Requirements such as regexp("^gpu", TARGET.Machine) or
// member("docker", TARGET.Features) are then evaluated once for each distinct value.
type resultCache struct {
	expr      exprNode
	cells     []*cellRef
	byID      []truthState                  // by number in a dictionary, if the expression depends on one such cell
	byKey     map[resultCacheKey]truthState // in all other cases
	gapStates [2]truthState                 // for one cell that is UNDEFINED or ERROR
	evaluator evaluator
}

type resultCacheKey struct {
	bits [maxCacheCells]uint64
	gaps [maxCacheCells]uint8
}

const (
	maxCacheCells   = 4
	maxCacheEntries = 1 << 16
)

// truthState is the value of an expression as a condition.
type truthState uint8

const (
	truthUnknown truthState = iota
	truthTrue
	truthFalse
	truthUndefined
	truthError
	truthImpure // the value depends on more than the cells
)

// buildCached compiles a condition through a resultCache.
func (l *programBuilder) buildCached(n exprNode) (compiledOperand, bool) {
	mem := &resultCache{expr: n}
	if !mem.collect(n) || len(mem.cells) == 0 || len(mem.cells) > maxCacheCells {
		return compiledOperand{}, false
	}
	l.caches++
	r := compiledOperand{kind: Boolean, at: l.mask(), undefined: l.mask(), errors: l.mask()}
	single := mem.cells[0].column(l.segment).class
	one := len(mem.cells) == 1 && (single == classString || single == classOther)
	if !one {
		mem.byKey = map[resultCacheKey]truthState{}
	}
	l.step(func(m *vectorVM) {
		var truth, undef, bad laneMask
		m.live.each(func(lane int) {
			i := m.row(lane)
			var v truthState
			if one {
				v = *mem.dictionarySlot(l.query, m.segment, i)
			} else {
				v = mem.lookup(l.query, m.segment, i)
			}
			switch v {
			case truthTrue:
				truth.set(lane)
			case truthUndefined:
				undef.set(lane)
			case truthError:
				bad.set(lane)
			case truthImpure, truthUnknown:
				m.undecided.set(lane)
			}
		})
		m.masks[r.at], m.masks[r.undefined], m.masks[r.errors] = truth, undef, bad
	})
	return r, true
}

// collect lists the cells of n, each once. ok is false if there are too many.
func (mem *resultCache) collect(n exprNode) (ok bool) {
	if ref, isRef := n.(*cellRef); isRef {
		for _, c := range mem.cells {
			if c.col == ref.col && c.param == ref.param {
				return true
			}
		}
		mem.cells = append(mem.cells, ref)
		return len(mem.cells) <= maxCacheCells
	}
	for child := range children(n) {
		if !mem.collect(child) {
			return false
		}
	}
	return true
}

// dictionarySlot returns the cached result for a row, if the expression depends on one
// value of a dictionary. It computes a missing result.
func (mem *resultCache) dictionarySlot(q *Query, s *tableSegment, i int) *truthState {
	c := mem.cells[0].column(s)
	var v *truthState
	switch {
	case c.undefined.has(i):
		v = &mem.gapStates[0]
	case c.errors.has(i):
		v = &mem.gapStates[1]
	default:
		id := int(c.cells[i])
		if id >= len(mem.byID) {
			mem.byID = append(mem.byID, make([]truthState, id+id/2+64-len(mem.byID))...)
		}
		v = &mem.byID[id]
	}
	if *v == truthUnknown {
		*v = mem.evalRow(q, s, i)
	}
	return v
}

func (mem *resultCache) lookup(q *Query, s *tableSegment, i int) truthState {
	var key resultCacheKey
	for k, ref := range mem.cells {
		switch c := ref.column(s); {
		case c.undefined.has(i):
			key.gaps[k] = 1
		case c.errors.has(i):
			key.gaps[k] = 2
		case c.class == classBool:
			key.bits[k] = c.bools[i>>6] >> (i & 63) & 1
		case c.class != classNone:
			key.bits[k] = c.cells[i]
		}
	}
	v, ok := mem.byKey[key]
	if !ok {
		if v = mem.evalRow(q, s, i); v == truthUnknown {
			return v
		}
		if len(mem.byKey) >= maxCacheEntries {
			clear(mem.byKey)
		}
		mem.byKey[key] = v
	}
	return v
}

// evalRow evaluates the expression for a row. The result is unknown when the query's
// budget is spent.
func (mem *resultCache) evalRow(q *Query, s *tableSegment, i int) truthState {
	if q.budget <= 0 {
		return truthUnknown
	}
	q.now.segment, q.now.at = s, i
	mem.evaluator.reset(q.job, nil, nil, cellSteps)
	v := mem.evaluator.eval(mem.expr, &mem.evaluator.leftScope)
	q.budget -= cellSteps - max(mem.evaluator.stepsLeft, 0)
	if mem.evaluator.impure || mem.evaluator.stepsLeft < 0 {
		return truthImpure
	}
	return truthStateOf(v)
}

func truthStateOf(v Value) truthState {
	truth, ok := v.Truth()
	switch {
	case v.kind == Undefined:
		return truthUndefined
	case !ok:
		return truthError
	case truth:
		return truthTrue
	}
	return truthFalse
}
