package chunktracker

import (
	"slices"
	"time"
)

// Bounds on the work for one plan, whatever the size of the blob and of the pool.
const (
	maxWanted     = 512 // chunks that are put in order
	maxTried      = 24  // of these, for each stream
	maxRackTried  = 64  // machines of the own rack
	maxFarTried   = 16  // machines of those that got a chunk last
	randomHolders = 8   // machines that are tried for a chunk that many have
)

// sourceChoice is the search for sources of one member.
type sourceChoice struct {
	*Tracker
	now    time.Duration
	to     *member
	wanted []uint64 // chunks below, their rarity above: the rarest first
	near   []*member
}

// choose leases sources to a member.
func (t *Tracker) choose(now time.Duration, to *member, streams int) (sources []Source) {
	c := sourceChoice{Tracker: t, now: now, to: to}
	c.orderWanted()
	if len(c.wanted) == 0 {
		return nil
	}
	c.findNear()
	for range streams {
		from, first := c.next()
		if from == nil {
			break
		}
		chunks := c.batch(from, first)
		t.startLease(now, from, to, chunks)
		sources = append(sources, Source{from.id, from.address, chunks})
		c.near = slices.DeleteFunc(c.near, func(m *member) bool { return m.machine == from })
	}
	return sources
}

// orderWanted puts what the member lacks in order. Of many chunks it takes some in a row
// from a random one on.
func (c *sourceChoice) orderWanted() {
	b, words := c.to.blob, len(c.to.have)
	all := NewChunkSet(b.chunks)
	all.Fill(b.chunks)
	begin := 0
	if b.chunks > maxWanted {
		begin = c.random.below(words)
	}
	for k := 0; k < words && len(c.wanted) < maxWanted; k++ {
		w := (begin + k) % words
		each(w, all[w]&^c.to.have[w]&^c.to.coming[w], func(i int) {
			rarity := uint64(b.all.copies[i] + b.all.coming[i])
			c.wanted = append(c.wanted, rarity<<40|c.random.next()>>40<<16|uint64(i))
		})
	}
	slices.Sort(c.wanted)
}

// chunkOf returns the chunk of an entry of wanted.
func chunkOf(entry uint64) int { return int(entry & 0xffff) }

// isFree reports whether the member may fetch from another one now.
func (c *sourceChoice) isFree(m *member) bool {
	if m == c.to || m.gone || !m.serves || m.machine.uploads >= c.options.MaxUploads ||
		m.machine.isReportedBy(c.now, c.to.machine.id.Node) {
		return false
	}
	return !slices.ContainsFunc(c.to.leases, func(l *lease) bool { return l.from == m.machine })
}

// findNear finds the free machines of the member's rack.
func (c *sourceChoice) findNear() {
	list := c.to.rack.members
	begin := c.random.below(len(list))
	for k := range min(len(list), maxRackTried) {
		if m := list[(begin+k)%len(list)]; c.isFree(m) {
			c.near = append(c.near, m)
		}
	}
}

// next returns the next source, and the first chunk that it sends; nil if there is none.
func (c *sourceChoice) next() (*machine, int) {
	b, tried := c.to.blob, 0
	for _, entry := range c.wanted {
		i := chunkOf(entry)
		if c.to.coming.Has(i) {
			continue
		}
		if b.all.copies[i] == 0 { // only the server has it; there may be many
			if c.maySeed(i) {
				return &c.seed, i
			}
			continue
		}
		if tried++; tried > maxTried {
			break
		}
		if m := leastLoaded(c.near, i, nil); m != nil {
			return m.machine, i
		}
		if c.to.rack.counts.coming[i] > 0 { // it will be near soon
			continue
		}
		if m := c.findFar(i); m != nil {
			return m, i
		}
	}
	tried = 0
	for _, entry := range c.wanted { // what comes into the rack already, rather than nothing
		i := chunkOf(entry)
		if c.to.coming.Has(i) || c.to.rack.counts.coming[i] == 0 || b.all.copies[i] == 0 {
			continue
		}
		if m := c.findFar(i); m != nil {
			return m, i
		}
		if tried++; tried > maxTried {
			break
		}
	}
	return nil, 0
}

// leastLoaded returns the member with chunk i that serves the fewest, or best.
func leastLoaded(list []*member, i int, best *member) *member {
	for _, m := range list {
		if m.have.Has(i) && (best == nil || m.machine.uploads < best.machine.uploads) {
			best = m
		}
	}
	return best
}

// findFar finds a source of a chunk in other racks, and at last the server.
func (c *sourceChoice) findFar(i int) *machine {
	b := c.to.blob
	var best *member
	if holders := b.holders[i]; len(holders) > 0 {
		begin := c.random.below(len(holders))
		for k := range min(len(holders), maxFarTried) {
			m := holders[(begin+k)%len(holders)]
			if m.have.Has(i) && c.isFree(m) && (best == nil || m.machine.uploads < best.machine.uploads) {
				if best = m; m.machine.uploads == 0 {
					break
				}
			}
		}
	}
	if best == nil && int(b.all.copies[i]) > maxHolders {
		for range randomHolders {
			if m := b.members[c.random.below(len(b.members))]; m.have.Has(i) && c.isFree(m) {
				best = m
				break
			}
		}
	}
	switch {
	case best != nil:
		return best.machine
	case c.maySeed(i):
		return &c.seed
	}
	return nil
}

// maySeed reports whether the server may send a chunk to the member.
func (c *sourceChoice) maySeed(i int) bool {
	b := c.to.blob
	if c.seed.uploads >= c.options.MaxSeedUploads ||
		slices.ContainsFunc(c.to.leases, func(l *lease) bool { return l.from == &c.seed }) {
		return false
	}
	if c.to.failures >= maxFailures {
		return true
	}
	if slices.ContainsFunc(c.to.leases, func(l *lease) bool { return l.from.has(b, i) }) {
		return false // it can come from there, after what comes now
	}
	return int(b.seedCopies[i]) < c.options.MaxSeedCopies || b.all.copies[i]+b.all.coming[i] == 0
}

// maxFailures is how many sources of a machine may fail in a row before it may have the
// server.
const maxFailures = 2

// has reports whether a machine has a chunk.
func (m *machine) has(b *trackedBlob, i int) bool {
	at := m.members[b]
	return at != nil && at.have.Has(i)
}

// batch returns the chunks that a source sends, the first of which is given. While a
// chunk is rare it comes alone, so that it is sent on as soon as it is there. Where
// most have it, more come at a time.
func (c *sourceChoice) batch(from *machine, first int) []int {
	chunks := []int{first}
	b := c.to.blob
	copies := int(b.all.copies[first])
	most := min(c.options.MaxBatch, 1+copies/copiesOfBatch)
	if 2*copies >= len(b.members) {
		most = c.options.MaxBatch
	}
	for _, entry := range c.wanted {
		i := chunkOf(entry)
		if len(chunks) >= most {
			break
		}
		if i == first || c.to.coming.Has(i) || from != &c.seed && !from.has(b, i) || from == &c.seed && !c.maySeed(i) {
			continue
		}
		chunks = append(chunks, i)
	}
	return chunks
}

// copiesOfBatch is how many copies a chunk has for each chunk more in one batch.
const copiesOfBatch = 64
