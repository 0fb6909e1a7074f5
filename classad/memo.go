package classad

// memo remembers the truth of an expression that could not be compiled, by the cells that it depends on. Requirements such as
// regexp("^gpu", TARGET.Machine) or member("docker", TARGET.Features) are so evaluated once for each value that some row has.
type memo struct {
	n     node
	cells []*cellRef
	byID  []verdict           // by number of a dictionary's value, if there is one cell and it holds such
	byKey map[memoKey]verdict // otherwise
	rare  [2]verdict          // of the one cell: UNDEFINED, ERROR
	ev    evaluator
}

type memoKey struct {
	bits [maxMemoCells]uint64
	gaps [maxMemoCells]uint8
}

const (
	maxMemoCells = 4
	maxMemo      = 1 << 16
)

// verdict is what an expression is as a condition.
type verdict uint8

const (
	unknown verdict = iota
	isTrue
	isFalse
	isUndef
	isBad
	strays // it depends on more than the cells
)

// remember compiles a condition that has no code of its own.
func (l *lowering) remember(n node) (operand, bool) {
	mem := &memo{n: n}
	if !mem.collect(n) || len(mem.cells) == 0 || len(mem.cells) > maxMemoCells {
		return operand{}, false
	}
	l.memos++
	r := operand{kind: Boolean, at: l.mask(), undef: l.mask(), bad: l.mask()}
	single := mem.cells[0].column(l.seg).class
	one := len(mem.cells) == 1 && (single == ofTexts || single == ofOthers)
	if !one {
		mem.byKey = map[memoKey]verdict{}
	}
	l.step(func(m *machine) {
		var truth, undef, bad mask
		m.live.each(func(lane int) {
			i := m.row(lane)
			var v verdict
			if one {
				v = *mem.slot(l.q, m.seg, i)
			} else {
				v = mem.lookup(l.q, m.seg, i)
			}
			switch v {
			case isTrue:
				truth.set(lane)
			case isUndef:
				undef.set(lane)
			case isBad:
				bad.set(lane)
			case strays, unknown:
				m.stray.set(lane)
			}
		})
		m.m[r.at], m.m[r.undef], m.m[r.bad] = truth, undef, bad
	})
	return r, true
}

// collect lists the cells of n, each once. ok is false if they are too many.
func (mem *memo) collect(n node) (ok bool) {
	if ref, isRef := n.(*cellRef); isRef {
		for _, c := range mem.cells {
			if c.col == ref.col && c.param == ref.param {
				return true
			}
		}
		mem.cells = append(mem.cells, ref)
		return len(mem.cells) <= maxMemoCells
	}
	for child := range children(n) {
		if !mem.collect(child) {
			return false
		}
	}
	return true
}

// slot is where the verdict on a row is kept if it depends on one value of a dictionary; it is filled.
func (mem *memo) slot(q *Query, s *segment, i int) *verdict {
	c := mem.cells[0].column(s)
	var v *verdict
	switch {
	case c.undef.has(i):
		v = &mem.rare[0]
	case c.bad.has(i):
		v = &mem.rare[1]
	default:
		id := int(c.cells[i])
		if id >= len(mem.byID) {
			mem.byID = append(mem.byID, make([]verdict, id+id/2+64-len(mem.byID))...)
		}
		v = &mem.byID[id]
	}
	if *v == unknown {
		*v = mem.judge(q, s, i)
	}
	return v
}

func (mem *memo) lookup(q *Query, s *segment, i int) verdict {
	var key memoKey
	for k, ref := range mem.cells {
		switch c := ref.column(s); {
		case c.undef.has(i):
			key.gaps[k] = 1
		case c.bad.has(i):
			key.gaps[k] = 2
		case c.class == ofTruths:
			key.bits[k] = c.truth[i>>6] >> (i & 63) & 1
		case c.class != ofNothing:
			key.bits[k] = c.cells[i]
		}
	}
	v, ok := mem.byKey[key]
	if !ok {
		if v = mem.judge(q, s, i); v == unknown {
			return v
		}
		if len(mem.byKey) >= maxMemo {
			clear(mem.byKey)
		}
		mem.byKey[key] = v
	}
	return v
}

// judge evaluates the expression for a row; it is unknown when the query has spent all that it may.
func (mem *memo) judge(q *Query, s *segment, i int) verdict {
	if q.budget <= 0 {
		return unknown
	}
	q.now.seg, q.now.at = s, i
	mem.ev.reset(q.job, nil, nil, cellSteps)
	v := mem.ev.eval(mem.n, &mem.ev.left)
	q.budget -= cellSteps - max(mem.ev.steps, 0)
	if mem.ev.strays || mem.ev.steps < 0 {
		return strays
	}
	return verdictOf(v)
}

func verdictOf(v Value) verdict {
	truth, ok := v.Truth()
	switch {
	case v.kind == Undefined:
		return isUndef
	case !ok:
		return isBad
	case truth:
		return isTrue
	}
	return isFalse
}
