package classad

import "iter"

// Ad is an ordered set of attributes. Names are compared without regard to case; the first spelling of a name is kept. The zero Ad is
// empty and ready. An Ad that others read must not be changed; [Ad.Copy] is cheap, because expressions are shared.
type Ad struct {
	attrs []attr
	table []uint32 // open-addressed hash table of indexes into attrs, plus one; nil while there are few
	hides bool     // an attribute may have a name that the language gives a meaning, such as TARGET
}

type attr struct {
	hash uint32
	name string
	expr Expr
}

// few is how many attributes are searched one after another before a hash table pays.
const few = 8

// New is an empty ad.
func New() *Ad { return &Ad{} }

// Len is the number of attributes.
func (a *Ad) Len() int { return len(a.attrs) }

// Names are the names of the attributes in their order.
func (a *Ad) Names() []string {
	names := make([]string, len(a.attrs))
	for i := range a.attrs {
		names[i] = a.attrs[i].name
	}
	return names
}

// All ranges over the attributes in their order.
func (a *Ad) All() iter.Seq2[string, Expr] {
	return func(yield func(string, Expr) bool) {
		for i := range a.attrs {
			if !yield(a.attrs[i].name, a.attrs[i].expr) {
				return
			}
		}
	}
}

// Lookup is the expression of an attribute, not evaluated.
func (a *Ad) Lookup(name string) (Expr, bool) {
	if i := a.index(hashName(name), name); i >= 0 {
		return a.attrs[i].expr, true
	}
	return Expr{}, false
}

// Insert sets an attribute. A new one goes to the end, one that exists keeps its place and spelling.
func (a *Ad) Insert(name string, e Expr) {
	h := hashName(name)
	if i := a.index(h, name); i >= 0 {
		a.attrs[i].expr = e
		return
	}
	a.attrs = append(a.attrs, attr{h, name, e})
	a.hides = a.hides || scopeOf(name) != scopeNone
	if len(a.attrs) > few {
		a.enter(len(a.attrs) - 1)
	}
}

// Delete removes an attribute, and says whether it was there.
func (a *Ad) Delete(name string) bool {
	i := a.index(hashName(name), name)
	if i < 0 {
		return false
	}
	a.attrs = append(a.attrs[:i:i], a.attrs[i+1:]...)
	a.table = nil
	if len(a.attrs) > few {
		a.rehash()
	}
	return true
}

// Copy is an ad with the same attributes, which can be changed without changing a.
func (a *Ad) Copy() *Ad {
	c := &Ad{attrs: make([]attr, len(a.attrs), len(a.attrs)+4), hides: a.hides}
	copy(c.attrs, a.attrs)
	if a.table != nil {
		c.table = append([]uint32(nil), a.table...)
	}
	return c
}

// Update sets every attribute of other in a.
func (a *Ad) Update(other *Ad) {
	for i := range other.attrs {
		a.Insert(other.attrs[i].name, other.attrs[i].expr)
	}
}

// index is the place of a name in attrs, or -1.
func (a *Ad) index(hash uint32, name string) int {
	if a.table == nil {
		for i := range a.attrs {
			if at := &a.attrs[i]; at.hash == hash && foldEqual(at.name, name) {
				return i
			}
		}
		return -1
	}
	mask := uint32(len(a.table) - 1)
	for p := hash & mask; a.table[p] != 0; p = (p + 1) & mask {
		i := int(a.table[p] - 1)
		if at := &a.attrs[i]; at.hash == hash && foldEqual(at.name, name) {
			return i
		}
	}
	return -1
}

// enter puts attribute i into the hash table, which is at most half full.
func (a *Ad) enter(i int) {
	if a.table == nil || 2*len(a.attrs) > len(a.table) {
		a.rehash()
		return
	}
	mask := uint32(len(a.table) - 1)
	p := a.attrs[i].hash & mask
	for a.table[p] != 0 {
		p = (p + 1) & mask
	}
	a.table[p] = uint32(i + 1)
}

func (a *Ad) rehash() {
	size := 64
	for size < 4*len(a.attrs) {
		size *= 2
	}
	a.table = make([]uint32, size)
	for i := range a.attrs {
		mask := uint32(size - 1)
		p := a.attrs[i].hash & mask
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
