package chunktracker

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// trackedBlob is who has what of a blob.
type trackedBlob struct {
	digest  string
	chunks  int
	used    time.Duration // when a machine last asked for it
	members []*member
	racks   map[string]*rackGroup
	all     chunkCounts
	// by chunk: how often the server was named as its source
	seedCopies []uint16
	holders    [][]*member // by chunk: those that got it last, at most maxHolders
	lastHolder []uint8     // by chunk: which of holders was written last
}

// maxHolders bounds the machines that are remembered for a chunk. They find a rare one;
// what more machines have is found by trying some at random.
const maxHolders = 64

// chunkCounts counts the copies of each chunk.
type chunkCounts struct {
	copies []int32 // machines that have it and serve it
	coming []int32 // machines that fetch it
}

func newChunkCounts(n int) chunkCounts { return chunkCounts{make([]int32, n), make([]int32, n)} }

// rackGroup is the machines of a rack that have, or want, a blob.
type rackGroup struct {
	members []*member
	counts  chunkCounts
}

// member is a machine as one that has, or wants, a blob.
type member struct {
	machine       *machine
	blob          *trackedBlob
	rack          *rackGroup
	at, atInRack  int // in the lists of members
	have, coming  ChunkSet
	leases        []*lease // of which it is the receiver
	serves, gone  bool
	failures      int // sources that failed since one did not
	accountedSize int64
}

// blob returns the blob of a digest.
func (t *Tracker) blob(digest string, chunks int) (*trackedBlob, error) {
	if b := t.blobs[digest]; b != nil {
		return b, nil
	}
	if len(t.blobs) >= t.options.MaxBlobs {
		return nil, fmt.Errorf("plan of chunks: %w: the server plans for %d blobs, and no more have room",
			roost.Exhausted, len(t.blobs))
	}
	b := &trackedBlob{digest: digest, chunks: chunks, racks: map[string]*rackGroup{}, all: newChunkCounts(chunks),
		seedCopies: make([]uint16, chunks), holders: make([][]*member, chunks), lastHolder: make([]uint8, chunks)}
	if t.setBytes+b.size() > t.options.MaxSetBytes {
		return nil, fmt.Errorf("plan of chunks: %w: the server has no room to plan for one more blob",
			roost.Exhausted)
	}
	t.setBytes += b.size()
	t.blobs[digest] = b
	return b, nil
}

// size returns the most bytes of memory of a blob without its members.
func (b *trackedBlob) size() int64 { return int64(b.chunks) * (maxHolders + 4) * 8 }

// member returns a machine as a member of a blob.
func (t *Tracker) member(b *trackedBlob, from *machine) (*member, error) {
	if m := from.members[b]; m != nil {
		return m, nil
	}
	size := int64(len(NewChunkSet(b.chunks))) * 2 * wordBits / 8
	g := b.racks[from.rack]
	if g == nil {
		size += int64(b.chunks) * 8
	}
	if t.setBytes+size > t.options.MaxSetBytes {
		return nil, fmt.Errorf("plan of chunks: %w: the server has no room for what one more machine has",
			roost.Exhausted)
	}
	t.setBytes += size
	if g == nil {
		g = &rackGroup{counts: newChunkCounts(b.chunks)}
		b.racks[from.rack] = g
	}
	m := &member{machine: from, blob: b, rack: g, at: len(b.members), atInRack: len(g.members),
		have: NewChunkSet(b.chunks), coming: NewChunkSet(b.chunks), accountedSize: size}
	b.members, g.members = append(b.members, m), append(g.members, m)
	from.members[b] = m
	return m, nil
}

// removeMember forgets what a machine has of a blob, and ends what it fetches.
func (t *Tracker) removeMember(m *member) {
	b, g := m.blob, m.rack
	for len(m.leases) > 0 {
		t.endLease(m.leases[0])
	}
	b.setServes(m, false)
	m.gone = true
	b.members[m.at] = b.members[len(b.members)-1]
	b.members[m.at].at = m.at
	b.members = b.members[:len(b.members)-1]
	g.members[m.atInRack] = g.members[len(g.members)-1]
	g.members[m.atInRack].atInRack = m.atInRack
	g.members = g.members[:len(g.members)-1]
	if len(g.members) == 0 {
		delete(b.racks, m.machine.rack)
	}
	delete(m.machine.members, b)
	t.setBytes -= m.accountedSize
}

// setHave notes what a member has now.
func (b *trackedBlob) setHave(m *member, have ChunkSet) {
	for w := range m.have {
		got := uint64(0)
		if w < len(have) {
			got = have[w]
		}
		if lost := m.have[w] &^ got; lost != 0 && m.serves {
			each(w, lost, func(i int) { b.count(m, i, -1) })
		}
		if came := got &^ m.have[w]; came != 0 && m.serves {
			each(w, came, func(i int) { b.count(m, i, 1) })
		}
		m.have[w] = got
	}
}

// setServes notes whether others may fetch from a member.
func (b *trackedBlob) setServes(m *member, serves bool) {
	if m.serves == serves {
		return
	}
	m.serves = serves
	by := int32(1)
	if !serves {
		by = -1
	}
	for w, word := range m.have {
		each(w, word, func(i int) { b.count(m, i, by) })
	}
}

// count notes a copy more or less of a chunk.
func (b *trackedBlob) count(m *member, i int, by int32) {
	b.all.copies[i] += by
	m.rack.counts.copies[i] += by
	if by < 0 {
		return
	}
	if len(b.holders[i]) < maxHolders {
		b.lastHolder[i] = uint8(len(b.holders[i]))
		b.holders[i] = append(b.holders[i], m)
		return
	}
	b.lastHolder[i] = (b.lastHolder[i] + 1) % maxHolders
	b.holders[i][b.lastHolder[i]] = m
}
