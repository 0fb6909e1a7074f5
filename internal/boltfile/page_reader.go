package boltfile

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// bbolt trusts its pages. This reader trusts nothing: it reads what can be reached from
// the newest meta page, names each bad page and record by the keys that it should have,
// and continues with the others.

// The layout of bbolt's pages, version 2 of the format. Numbers are in the machine's byte
// order.
const (
	pageHeader    = 16
	elementSize   = 16
	metaSize      = 64
	metaMagic     = 0xED0CDAED
	metaVersion   = 2
	branchFlag    = 0x01
	leafFlag      = 0x02
	bucketElement = 0x01
	bucketHeader  = 16
	maxDepth      = 64 // pages from the root to a leaf, at most
)

// DamageFinding is one damage of a file.
type DamageFinding struct {
	Bucket string // "": the file as a whole
	// affected keys: From alone, or the range from From to before To; both nil: unknown
	From, To []byte
	IsRange  bool // From and To are a range
	Reason   string
	Raw      []byte // the damaged value, if it could be read

	// the checksum identified one flipped bit: From and Raw are the original record
	Corrected bool
}

// pageReader reads the pages of one file.
type pageReader struct {
	bytes         []byte
	size          int    // bytes of a page
	pageCount     uint64 // number of the first unused page
	txid          uint64
	used          map[uint64]bool
	damages       []DamageFinding
	record        func(bucket string, key, raw []byte)
	includeBucket func(bucket string) bool // selects the buckets to read; nil: all
}

// metaPage is one of a file's two meta pages.
type metaPage struct{ size, root, pageCount, txid uint64 }

// metaPageAt reads the meta page at an offset, or returns false if it is damaged.
func metaPageAt(b []byte, at int) (h metaPage, whole bool) {
	if at < 0 || at+pageHeader+metaSize > len(b) {
		return h, false
	}
	m := b[at+pageHeader : at+pageHeader+metaSize]
	sum := fnv.New64a()
	sum.Write(m[:56])
	e := binary.NativeEndian
	h = metaPage{size: uint64(e.Uint32(m[8:])), root: e.Uint64(m[16:]), pageCount: e.Uint64(m[40:]),
		txid: e.Uint64(m[48:])}
	return h, e.Uint32(m) == metaMagic && e.Uint32(m[4:]) == metaVersion && e.Uint64(m[56:]) == sum.Sum64()
}

// newestMeta finds the newest meta page of a file. A damaged one is reported even if the
// other is valid, because it may have been the newer.
func (r *pageReader) newestMeta() (newest metaPage, found bool) {
	first, one := metaPageAt(r.bytes, 0)
	second, two := metaPage{}, false
	if one {
		second, two = metaPageAt(r.bytes, int(first.size))
	}
	for size := 1 << 10; !one && !two && size <= 1<<24; size <<= 1 {
		second, two = metaPageAt(r.bytes, size)
	}
	switch {
	case !one && !two:
		r.damages = append(r.damages,
			DamageFinding{Reason: "both heads of the file are damaged, so nothing in it can be found"})
		return newest, false
	case !one:
		first = second
	case !two:
		second = first
	}
	if !one || !two {
		r.damages = append(r.damages, DamageFinding{Reason: fmt.Sprintf(
			"one of its two heads is damaged, perhaps the newer one; the other is of transaction %d, and what was "+
				"written after that is not found", first.txid)})
	}
	if second.txid > first.txid {
		first = second
	}
	return first, true
}

// readAll reads the whole file.
func (r *pageReader) readAll() bool {
	h, ok := r.newestMeta()
	if !ok {
		return false
	}
	r.size, r.pageCount, r.txid, r.used = int(h.size), h.pageCount, h.txid, map[uint64]bool{}
	if whole := h.pageCount * h.size; uint64(len(r.bytes)) < whole {
		r.damages = append(r.damages,
			DamageFinding{Reason: fmt.Sprintf("it has lost its end: %d bytes of %d are there", len(r.bytes), whole)})
	}
	r.readPage("", h.root, nil, nil, 0)
	return true
}

func (r *pageReader) addDamage(bucket string, lo, hi []byte, format string, a ...any) {
	r.damages = append(r.damages, DamageFinding{Bucket: bucket, From: bytes.Clone(lo), To: bytes.Clone(hi),
		IsRange: true, Reason: fmt.Sprintf(format, a...)})
}

// readPage reads a page and all below it. Its keys must satisfy lo <= key < hi.
func (r *pageReader) readPage(bucket string, id uint64, lo, hi []byte, depth int) {
	if id < 2 || id >= r.pageCount || (id+1)*uint64(r.size) > uint64(len(r.bytes)) || depth > maxDepth {
		r.addDamage(bucket, lo, hi, "page %d is not in the file", id)
		return
	}
	p := r.bytes[id*uint64(r.size):]
	e := binary.NativeEndian
	overflow := uint64(e.Uint32(p[12:]))
	if own := e.Uint64(p); own != id || overflow >= r.pageCount-id ||
		(id+overflow+1)*uint64(r.size) > uint64(len(r.bytes)) {
		r.addDamage(bucket, lo, hi, "page %d is damaged", id)
		return
	}
	for n := id; n <= id+overflow; n++ {
		if r.used[n] {
			r.addDamage(bucket, lo, hi, "page %d is in two places", n)
			return
		}
		r.used[n] = true
	}
	r.pageElements(bucket, p[:(overflow+1)*uint64(r.size)], fmt.Sprintf("page %d", id), lo, hi, depth)
}

// pageElements reads the elements of a page.
func (r *pageReader) pageElements(bucket string, p []byte, name string, lo, hi []byte, depth int) {
	e := binary.NativeEndian
	kind, count := e.Uint16(p[8:]), int(e.Uint16(p[10:]))
	if kind != branchFlag && kind != leafFlag || pageHeader+count*elementSize > len(p) ||
		kind == branchFlag && count == 0 {
		r.addDamage(bucket, lo, hi, "%s is damaged", name)
		return
	}
	if kind == branchFlag {
		r.readBranch(bucket, p, name, lo, hi, depth, count)
		return
	}
	var before []byte
	for i := range count {
		at := pageHeader + i*elementSize
		el := p[at : at+elementSize]
		k, v, ok := splitElement(p, uint64(at)+uint64(e.Uint32(el[4:])), uint64(e.Uint32(el[8:])),
			uint64(e.Uint32(el[12:])))
		if !ok || !withPrefix(k, lo, hi) || i > 0 && bytes.Compare(before, k) >= 0 {
			from := lo
			if before != nil {
				from = append(bytes.Clone(before), 0)
			}
			r.addDamage(bucket, from, hi, "%s is damaged at its record %d", name, i)
			if !ok {
				continue
			}
			if !withPrefix(k, lo, hi) {
				continue
			}
		}
		before = k
		switch flags := e.Uint32(el); {
		case flags == 0 && bucket != "":
			r.record(bucket, k, v)
		case flags == bucketElement && bucket == "":
			r.readBucket(string(k), v)
		default:
			r.addDamage(bucket, k, append(bytes.Clone(k), 0), "%s is damaged at its record %d", name, i)
		}
	}
}

// readBranch reads the pages below a branch page.
func (r *pageReader) readBranch(bucket string, p []byte, name string, lo, hi []byte, depth, count int) {
	e := binary.NativeEndian
	keys, ids := make([][]byte, count), make([]uint64, count)
	for i := range count {
		at := pageHeader + i*elementSize
		el := p[at : at+elementSize]
		k, _, ok := splitElement(p, uint64(at)+uint64(e.Uint32(el)), uint64(e.Uint32(el[4:])), 0)
		if !ok || i > 0 && bytes.Compare(keys[i-1], k) >= 0 || i > 0 && !withPrefix(k, lo, hi) {
			r.addDamage(bucket, lo, hi, "%s is damaged at its entry %d", name, i)
			return
		}
		keys[i], ids[i] = k, e.Uint64(el[8:])
	}
	for i, id := range ids {
		from, to := keys[i], hi
		if i == 0 {
			from = lo
		}
		if i+1 < count {
			to = keys[i+1]
		}
		r.readPage(bucket, id, from, to, depth+1)
	}
}

// splitElement returns a key and the value after it from a page.
func splitElement(p []byte, at, key, value uint64) (k, v []byte, ok bool) {
	if at > uint64(len(p)) || key > uint64(len(p)) || value > uint64(len(p)) || at+key+value > uint64(len(p)) {
		return nil, nil, false
	}
	return p[at : at+key : at+key], p[at+key : at+key+value : at+key+value], true
}

// readBucket reads a bucket from its element in the root.
func (r *pageReader) readBucket(name string, v []byte) {
	if r.includeBucket != nil && !r.includeBucket(name) {
		return
	}
	if len(v) < bucketHeader {
		r.addDamage(name, nil, nil, "its root is damaged")
		return
	}
	if root := binary.NativeEndian.Uint64(v); root != 0 {
		r.readPage(name, root, nil, nil, 0)
		return
	}
	if v = v[bucketHeader:]; len(v) < pageHeader {
		r.addDamage(name, nil, nil, "its root is damaged")
		return
	}
	inline := append([]byte(nil), v...) // a copy, aligned as far as it matters here
	r.pageElements(name, inline, "its root", nil, nil, 0)
}
