package classad

// valueDictionary numbers values, so that a column can store them as integers. Equal
// values are compared and computed once. Numbers are not reused while the dictionary
// exists.
type valueDictionary struct {
	ids    map[string]uint32 // by text
	values []Value
	// of a string: the canonical number, which is the first number of a string that is
	// equal without regard to case
	canonicalID []uint32
	variants    []uint32          // of a canonical number: how many strings it has
	folded      map[string]uint32 // canonical number by string in lower case
}

func newDictionary() *valueDictionary {
	return &valueDictionary{ids: map[string]uint32{}, folded: map[string]uint32{}}
}

// text returns the number of a string.
func (d *valueDictionary) text(s string) uint32 {
	if id, ok := d.ids[s]; ok {
		return id
	}
	id := uint32(len(d.values))
	fold := lowerASCII(s)
	lead, ok := d.folded[fold]
	if !ok {
		lead = id
		d.folded[fold] = id
	}
	d.ids[s] = id
	d.values = append(d.values, StringValue(s))
	d.canonicalID = append(d.canonicalID, lead)
	d.variants = append(d.variants, 0)
	d.variants[lead]++
	return id
}

// other returns the number of a value that is not a string. key is its text, and may be
// changed afterwards.
func (d *valueDictionary) other(key []byte, v Value) uint32 {
	if id, ok := d.ids[string(key)]; ok {
		return id
	}
	id := uint32(len(d.values))
	d.ids[string(key)] = id
	d.values = append(d.values, v)
	return id
}
