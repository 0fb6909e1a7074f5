package pmi

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// contribution is what a contributor has told of two barriers in a row.
type contribution struct {
	epoch  [2]uint32 // 0: nothing
	keys   [2]KeySet
	ended  bool
	silent bool   // none of its ranks has ever spoken
	phases []byte // of its ranks, as in Progress
}

// Collector gathers the barriers of the contributors of a gang, or of a part of its tree.
type Collector struct {
	parts   []contribution
	counts  map[uint32]int // contributors that are in a barrier
	epoch   uint32         // the last barrier that is over
	set     KeySet         // of that one
	bytes   int            // held for barriers that are not over
	ended   int
	leaving bool     // ranks are being ended from outside
	stopped *Message // how it has ended
}

// NewCollector returns one of so many contributors.
func NewCollector(parts int) *Collector {
	return &Collector{parts: make([]contribution, parts), counts: map[uint32]int{}}
}

// Effect is a message to a contributor, or to all.
type Effect struct {
	To      int // -1: to all
	Message Message
}

// Outcome is how the gang has ended; nil while it has not.
func (c *Collector) Outcome() *Message { return c.stopped }

// Held is how many bytes of keys are held. They are of barriers that are not over, and of
// the last one that is.
func (c *Collector) Held() int { return c.bytes + len(c.set) }

// Apply takes in a message of a contributor, and returns what is to be sent.
func (c *Collector) Apply(from int, m Message) []Effect {
	if from < 0 || from >= len(c.parts) {
		return nil
	}
	p := &c.parts[from]
	if c.stopped != nil {
		return []Effect{{from, *c.stopped}}
	}
	switch m.Kind {
	case Progress:
		p.phases = append(p.phases[:0], m.Data[:min(len(m.Data), maxRanksOfNode)]...)
	case Barrier:
		return c.applyBarrier(from, m)
	case Ended:
		if !p.ended {
			p.ended, p.silent = true, m.Code != 0
			c.ended++
			if stop := c.stopIfStuck(); stop != nil {
				return stop
			}
		}
		if c.ended == len(c.parts) {
			return c.end(Message{Kind: Finish})
		}
	case Leaving:
		c.leaving = true
	case Failed:
		if c.leaving {
			return nil
		}
		return c.Stop(m.Code, "rank "+strconv.Itoa(int(m.Rank))+" "+m.Text)
	}
	return nil
}

// maxRanksOfNode bounds the ranks of one task.
const maxRanksOfNode = 4096

// MarkEnded records that the ranks of a contributor have ended well in an earlier
// attempt.
func (c *Collector) MarkEnded(i int) {
	c.parts[i].ended = true
	c.ended++
}

// HasStarted reports whether all ranks are beyond their first barrier.
func (c *Collector) HasStarted(ranks []int) bool {
	return c.epoch > 0 || len(c.Missing(ranks, Running)) == 0
}

// Stop ends the gang.
func (c *Collector) Stop(code int32, text string) []Effect {
	if c.stopped != nil {
		return nil
	}
	return c.end(Message{Kind: Stop, Code: code, Text: text})
}

// end records how the gang has ended, and forgets its keys.
func (c *Collector) end(m Message) []Effect {
	c.stopped, c.set, c.bytes = &m, nil, 0
	for i := range c.parts {
		c.parts[i].keys = [2]KeySet{}
	}
	return []Effect{{-1, m}}
}

// applyBarrier takes in that a contributor is in a barrier.
func (c *Collector) applyBarrier(from int, m Message) []Effect {
	p, slot := &c.parts[from], m.Epoch%2
	switch {
	case m.Epoch == 0 || m.Epoch < c.epoch:
		return nil
	case m.Epoch == c.epoch: // it has missed the release, or knows it
		return []Effect{{from, Message{Kind: Release, Epoch: c.epoch, Data: c.set}}}
	case p.epoch[slot] == m.Epoch:
		return nil // it says so again
	case p.epoch[slot] > m.Epoch:
		return c.Stop(1, "barrier "+strconv.Itoa(int(m.Epoch))+" comes after barrier "+strconv.Itoa(int(p.epoch[slot])))
	case c.bytes+len(m.Data) > MaxGangKeys:
		return c.Stop(1, "the ranks have put more than "+strconv.Itoa(MaxGangKeys>>20)+" MiB of keys")
	}
	if old := p.epoch[slot]; old > c.epoch {
		c.forget(old)
	}
	c.bytes += len(m.Data) - len(p.keys[slot])
	p.epoch[slot], p.keys[slot] = m.Epoch, m.Data
	c.counts[m.Epoch]++
	if c.counts[m.Epoch] < len(c.parts) {
		return c.stopIfStuck()
	}
	return c.release(m.Epoch, slot)
}

// stopIfStuck ends the gang if a barrier has begun that a contributor can no longer
// enter. All ranks of that one have ended.
func (c *Collector) stopIfStuck() []Effect {
	if c.ended == 0 {
		return nil
	}
	for i := range c.parts {
		p := &c.parts[i]
		for epoch := range c.counts {
			if !p.ended || max(p.epoch[0], p.epoch[1]) >= epoch {
				continue
			}
			text := "have ended, and others wait for them in a barrier"
			if p.silent {
				text = "have ended without MPI_Init, and others have called it"
			}
			return c.Stop(1, "the ranks of task "+strconv.Itoa(i)+" of the gang "+text)
		}
	}
	return nil
}

// forget takes back that a contributor was in a barrier.
func (c *Collector) forget(epoch uint32) {
	if c.counts[epoch]--; c.counts[epoch] <= 0 {
		delete(c.counts, epoch)
	}
}

// release gives out the keys of a barrier that all are in.
func (c *Collector) release(epoch, slot uint32) []Effect {
	lists := make([][]byte, len(c.parts))
	for i := range c.parts {
		lists[i] = c.parts[i].keys[slot]
		c.bytes -= len(lists[i])
		c.parts[i].keys[slot] = nil
	}
	for e := range c.counts {
		if e <= epoch {
			delete(c.counts, e)
		}
	}
	c.epoch, c.set = epoch, bytes.Join(lists, nil)
	return []Effect{{-1, Message{Kind: Release, Epoch: epoch, Data: c.set}}}
}

// SpokeNever reports whether the program has ended without a word of PMI. Its processes
// have each run as a program of one rank.
func (c *Collector) SpokeNever() bool {
	return !slices.ContainsFunc(c.parts, func(p contribution) bool { return !p.ended || !p.silent })
}

// Missing lists the contributors some of whose ranks are not beyond a phase, and those
// ranks, from 0 within each. ranks is how many each contributor has.
func (c *Collector) Missing(ranks []int, below RankPhase) map[int][]int {
	missing := map[int][]int{}
	for i := range c.parts {
		for r := range ranks[i] {
			if r >= len(c.parts[i].phases) || RankPhase(c.parts[i].phases[r]) < below {
				missing[i] = append(missing[i], r)
			}
		}
	}
	return missing
}

// RankList writes ranks as ranges, for example "4-7, 12".
func RankList(ranks []int) string {
	var b strings.Builder
	for i := 0; i < len(ranks); {
		k := i
		for k+1 < len(ranks) && ranks[k+1] == ranks[k]+1 {
			k++
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(strconv.Itoa(ranks[i]))
		if k > i {
			b.WriteString("-" + strconv.Itoa(ranks[k]))
		}
		i = k + 1
	}
	return b.String()
}
