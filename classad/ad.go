package classad

import "iter"

// Ad is an ordered set of attributes. Names are compared without regard to case; the first spelling of a name is kept. The zero Ad is
// empty and ready. An Ad that others read must not be changed; [Ad.Copy] is cheap, because expressions are shared.
type Ad struct {
	labels []label  // of the attributes, in order
	exprs  []Expr   // of the same
	table  []uint32 // open-addressed hash table of indexes into labels, plus one; nil while there are few
	lent   bool     // others have the labels and the table too: see [Pool]
	hides  bool     // an attribute may have a name that the language gives a meaning, such as TARGET
}

type label struct {
	hash uint32
	name string
}

// few is how many attributes are searched one after another before a hash table pays.
const few = 8

// New is an empty ad.
func New() *Ad { return &Ad{} }

// Len is the number of attributes.
func (a *Ad) Len() int { return len(a.labels) }

// Names are the names of the attributes in their order.
func (a *Ad) Names() []string {
	names := make([]string, len(a.labels))
	for i := range a.labels {
		names[i] = a.labels[i].name
	}
	return names
}

// All ranges over the attributes in their order.
func (a *Ad) All() iter.Seq2[string, Expr] {
	return func(yield func(string, Expr) bool) {
		for i := range a.labels {
			if !yield(a.labels[i].name, a.exprs[i]) {
				return
			}
		}
	}
}

// Lookup is the expression of an attribute, not evaluated.
func (a *Ad) Lookup(name string) (Expr, bool) {
	if i := a.index(hashName(name), name); i >= 0 {
		return a.exprs[i], true
	}
	return Expr{}, false
}

// Insert sets an attribute. A new one goes to the end, one that exists keeps its place and spelling.
func (a *Ad) Insert(name string, e Expr) {
	h := hashName(name)
	if i := a.index(h, name); i >= 0 {
		a.exprs[i] = e
		return
	}
	a.own()
	if a.labels == nil { // to begin with one, and go on to two, four and eight, costs more than the little that it saves
		a.labels, a.exprs = make([]label, 0, few), make([]Expr, 0, few)
	}
	a.labels, a.exprs = append(a.labels, label{h, name}), append(a.exprs, e)
	a.hides = a.hides || scopeOf(name) != scopeNone
	if len(a.labels) > few {
		a.enter(len(a.labels) - 1)
	}
}

// Delete removes an attribute, and says whether it was there.
func (a *Ad) Delete(name string) bool {
	i := a.index(hashName(name), name)
	if i < 0 {
		return false
	}
	a.labels, a.exprs = append(a.labels[:i:i], a.labels[i+1:]...), append(a.exprs[:i:i], a.exprs[i+1:]...)
	a.table, a.lent = nil, false
	if len(a.labels) > few {
		a.rehash()
	}
	return true
}

// Copy is an ad with the same attributes, which can be changed without changing a.
func (a *Ad) Copy() *Ad {
	c := &Ad{labels: a.labels, exprs: make([]Expr, len(a.exprs), len(a.exprs)+4), table: a.table, lent: a.lent, hides: a.hides}
	copy(c.exprs, a.exprs)
	if !a.lent {
		c.lent = true
		c.own()
	}
	return c
}

// own makes the labels and the table the ad's own, that it can change them.
func (a *Ad) own() {
	if a.lent {
		a.labels = append(make([]label, 0, len(a.labels)+4), a.labels...)
		if a.table != nil {
			a.table = append([]uint32(nil), a.table...)
		}
		a.lent = false
	}
}

// Update sets every attribute of other in a.
func (a *Ad) Update(other *Ad) {
	for i := range other.labels {
		a.Insert(other.labels[i].name, other.exprs[i])
	}
}

// index is the place of a name in labels, or -1.
func (a *Ad) index(hash uint32, name string) int {
	if a.table == nil {
		for i := range a.labels {
			if at := &a.labels[i]; at.hash == hash && foldEqual(at.name, name) {
				return i
			}
		}
		return -1
	}
	mask := uint32(len(a.table) - 1)
	for p := hash & mask; a.table[p] != 0; p = (p + 1) & mask {
		i := int(a.table[p] - 1)
		if at := &a.labels[i]; at.hash == hash && foldEqual(at.name, name) {
			return i
		}
	}
	return -1
}

// enter puts attribute i into the hash table, which is at most half full.
func (a *Ad) enter(i int) {
	if a.table == nil || 2*len(a.labels) > len(a.table) {
		a.rehash()
		return
	}
	mask := uint32(len(a.table) - 1)
	p := a.labels[i].hash & mask
	for a.table[p] != 0 {
		p = (p + 1) & mask
	}
	a.table[p] = uint32(i + 1)
}

func (a *Ad) rehash() {
	size := 64
	for size < 4*len(a.labels) {
		size *= 2
	}
	a.table = make([]uint32, size)
	for i := range a.labels {
		mask := uint32(size - 1)
		p := a.labels[i].hash & mask
		for a.table[p] != 0 {
			p = (p + 1) & mask
		}
		a.table[p] = uint32(i + 1)
	}
}

// hashName is FNV-1a over the name in lower case.
func hashName(name string) uint32 {
	h := uint32(2166136261)
	for i := range len(name) {
		h = (h ^ uint32(lower(name[i]))) * 16777619
	}
	return h ^ h>>15
}
