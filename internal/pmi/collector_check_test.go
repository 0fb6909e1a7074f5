package pmi

import "fmt"

// check panics when the state contradicts itself.
func (c *Collector) check() {
	held, counts := 0, map[uint32]int{}
	for i := range c.parts {
		for slot, e := range c.parts[i].epoch {
			held += len(c.parts[i].keys[slot])
			if e > c.epoch {
				counts[e]++
			}
		}
	}
	if c.stopped != nil {
		return
	}
	if held != c.bytes || c.bytes > MaxGangKeys || len(counts) != len(c.counts) {
		panic(fmt.Sprintf("pmi: %d bytes of keys are held and %d counted, barriers %v and %v", held, c.bytes, counts,
			c.counts))
	}
	for e, n := range counts {
		if c.counts[e] != n || n >= len(c.parts) {
			panic(fmt.Sprintf("pmi: %d of %d are in barrier %d, and %d counted", n, len(c.parts), e, c.counts[e]))
		}
	}
}
