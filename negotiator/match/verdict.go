package match

import (
	"strings"

	"github.com/roost-batch/roost/classad"
)

// Matcher makes plans, and keeps the verdicts between them. It is not safe for concurrent use.
type Matcher struct {
	table int // rises when the tables below are begun anew
	cycle int // rises with each plan
	sets  map[string]int
	kinds map[string]*machineKind
	bound int // of kinds, above which the tables are begun anew

	evaluated int // pairs evaluated since the matcher was made
	scratch   scratch
}

// NewMatcher returns a matcher that knows nothing yet.
func NewMatcher() *Matcher {
	m := &Matcher{}
	m.renew(0)
	return m
}

// Evaluated is how many pairs of a class and a kind of machine were evaluated so far.
func (t *Matcher) Evaluated() int { return t.evaluated }

// renew forgets all kinds: those of ads that are long gone would stay for ever.
func (t *Matcher) renew(live int) {
	t.table++
	t.sets = map[string]int{}
	t.kinds = map[string]*machineKind{}
	t.bound = 4*live + 4096
}

// machineKind stands for the machines that agree in every attribute which the names of one set can lead to.
type machineKind struct {
	id       int
	volatile bool
}

// verdict is what a class and a kind of machine think of each other.
type verdict struct {
	known    bool
	wanted   bool // the class's Requirements hold
	admitted bool // the machine's policy holds
	conjunct uint16
	failing  uint16 // how many conjuncts do not hold
	cycle    int    // of a volatile verdict: when it was found
	rank     float64
}

func (v *verdict) ok() bool { return v.wanted && v.admitted }

// prepare gives the class its place in the tables.
func (t *Matcher) prepare(c *Class) {
	if c.table == t.table {
		return
	}
	key := strings.Join(c.names, " ")
	set, ok := t.sets[key]
	if !ok {
		set = len(t.sets)
		t.sets[key] = set
	}
	c.table, c.set, c.verdicts = t.table, set, nil
}

// judge is the verdict of a prepared class and a machine on each other.
func (t *Matcher) judge(c *Class, m *Machine, env *classad.Env) *verdict {
	k := t.kindOf(c, m)
	for k.id >= len(c.verdicts) {
		c.verdicts = append(c.verdicts, make([]verdict, k.id+1-len(c.verdicts)+len(c.verdicts)/2)...)
	}
	v := &c.verdicts[k.id]
	if !v.known || (c.volatile || k.volatile) && v.cycle != t.cycle {
		*v = t.evaluate(c, m, env)
	}
	return v
}

func (t *Matcher) kindOf(c *Class, m *Machine) *machineKind {
	if m.table != t.table {
		m.table, m.kinds = t.table, nil
	}
	if c.set < len(m.kinds) && m.kinds[c.set] != nil {
		return m.kinds[c.set]
	}
	for c.set >= len(m.kinds) {
		m.kinds = append(m.kinds, nil)
	}
	key, volatile := signature(c, m)
	k := t.kinds[key]
	if k == nil {
		k = &machineKind{id: len(t.kinds), volatile: volatile}
		t.kinds[key] = k
	}
	m.kinds[c.set] = k
	return k
}

// signature names the kind of a machine for the names that a class mentions: the texts of all its attributes to which evaluating either side's
// Requirements or the class's Rank can lead. Those are the ones with a name that any expression of the class mentions, the machine's policy, and, on
// and on, whatever these mention.
func signature(c *Class, m *Machine) (key string, isVolatile bool) {
	var b strings.Builder
	seen := make(map[string]bool, len(c.names)+8)
	queue := append(make([]string, 0, len(c.names)+8), "requirements", "start")
	queue = append(queue, c.names...)
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if seen[name] {
			continue
		}
		seen[name] = true
		e, ok := m.Ad.Lookup(name)
		if !ok {
			continue
		}
		b.WriteString(name)
		b.WriteByte('=')
		b.WriteString(m.text(name))
		b.WriteByte('\n')
		if _, literal := e.Literal(); literal {
			continue
		}
		isVolatile = isVolatile || volatile(e)
		my, target, unscoped := classad.References(e)
		for _, list := range [...][]string{my, target, unscoped} {
			for _, n := range list {
				queue = append(queue, strings.ToLower(n))
			}
		}
	}
	return strings.Join(c.names, " ") + "\n" + b.String(), isVolatile
}

// evaluate asks both sides.
func (t *Matcher) evaluate(c *Class, m *Machine, env *classad.Env) verdict {
	t.evaluated++
	v := verdict{known: true, cycle: t.cycle}
	v.wanted = classad.Eval(c.requirements, c.Ad, m.Ad, env).IsTrue()
	v.admitted = classad.Eval(m.policy, m.Ad, c.Ad, env).IsTrue()
	if v.ok() {
		if rank, ok := classad.Eval(c.rank, c.Ad, m.Ad, env).Number(); ok && rank == rank {
			v.rank = rank
		}
	}
	if !v.wanted {
		v.conjunct, v.failing = c.firstFailing(m, env)
	}
	return v
}

// firstFailing is the first conjunct of the Requirements that does not hold, and how many do not.
func (c *Class) firstFailing(m *Machine, env *classad.Env) (first, failing uint16) {
	for i, e := range c.conjuncts {
		if i == 1<<16-1 || classad.Eval(e, c.Ad, m.Ad, env).IsTrue() {
			continue
		}
		if failing == 0 {
			first = uint16(i)
		}
		failing++
	}
	return first, failing
}
