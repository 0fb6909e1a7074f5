package feed

import "time"

// logIndex is what is known of the log in memory. A part of the log is about as long as a
// file.
type logIndex struct {
	parts []logPart // oldest first
}

// logPart is some records that follow each other.
type logPart struct {
	record  uint64 // its first one
	first   uint64 // number of its first entry
	next    uint64 // number after its last entry
	bytes   int64
	entries uint64
	begun   time.Time
	closed  bool // the next record begins a new part, and a new file
}

// add adds a record of some bytes on disk. It reports whether the part is full: the next
// record then begins a new file.
func (x *logIndex) add(number uint64, r *record, bytes int, segment int64) (full bool) {
	n := len(x.parts)
	if n == 0 || x.parts[n-1].closed || r.gap {
		x.parts = append(x.parts, logPart{record: number, first: r.first, begun: r.at})
		n++
	}
	p := &x.parts[n-1]
	p.next, p.bytes, p.entries = r.next(), p.bytes+int64(bytes), p.entries+uint64(len(r.entries))
	p.closed = p.bytes >= segment
	return p.closed
}

// dropBefore forgets the parts before a record.
func (x *logIndex) dropBefore(record uint64) {
	n := 0
	for n < len(x.parts) && n+1 < len(x.parts) && x.parts[n].record < record {
		n++
	}
	x.parts = append([]logPart(nil), x.parts[n:]...)
}

// smallPart is how many bytes of stored entries are not worth a new file.
const smallPart = 256 << 10

// wantsPart reports whether all of the last part is stored and it is worth a new file.
// The part is closed then.
func (x *logIndex) wantsPart(acked uint64) bool {
	if len(x.parts) == 0 {
		return false
	}
	p := &x.parts[len(x.parts)-1]
	if p.next > acked+1 || p.bytes < smallPart && !p.closed || p.entries == 0 {
		return false
	}
	p.closed = true
	return true
}

// droppable returns the record before which all entries are stored; 0: nothing can be
// removed. The last part stays: it says how far the feed is.
func (x *logIndex) droppable(acked uint64) (until uint64) {
	for i := range x.parts {
		if x.parts[i].next > acked+1 || i+1 == len(x.parts) {
			break
		}
		until = x.parts[i+1].record
	}
	return until
}

// exceeds reports whether the log is longer than it may be.
func (x *logIndex) exceeds(b *Bounds, now time.Time) bool {
	var bytes int64
	var entries uint64
	for i := range x.parts {
		bytes, entries = bytes+x.parts[i].bytes, entries+x.parts[i].entries
	}
	return bytes > b.Bytes || entries > b.Entries ||
		len(x.parts) > 0 && entries > 0 && now.Sub(x.parts[0].begun) > b.Age
}

// find returns the part with an entry; found is false if there is none.
func (x *logIndex) find(number uint64) (p logPart, found bool) {
	for i := len(x.parts) - 1; i >= 0; i-- {
		if p := x.parts[i]; p.first <= number {
			return p, number < p.next
		}
	}
	return p, false
}

// bounds returns the number of the first entry on disk, and that after the last one.
func (x *logIndex) bounds() (first, next uint64) {
	if len(x.parts) == 0 {
		return 0, 0
	}
	return x.parts[0].first, x.parts[len(x.parts)-1].next
}
