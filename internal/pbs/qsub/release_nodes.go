package qsub

import (
	"slices"
	"strconv"
	"strings"
)

// HeldChunk is a chunk that a job has of a machine.
type HeldChunk struct {
	Number int
	Node   string
	Select string // what it asked for, as -l select would say it
}

// ExpandSelect lists the chunks of a select one by one, without their counts.
func ExpandSelect(selection string) (chunks []string) {
	for _, text := range strings.Split(selection, "+") {
		first, rest, _ := strings.Cut(text, ":")
		n, ok := parseCount(first)
		if !ok {
			n, rest = 1, text
		}
		if n > maxChunks-len(chunks) {
			return nil
		}
		chunks = append(chunks, slices.Repeat([]string{rest}, n)...)
	}
	return chunks
}

// JoinSelect is the select of chunks that ExpandSelect has listed.
func JoinSelect(chunks []string) string {
	var list []string
	for first := 0; first < len(chunks); {
		last := first
		for last+1 < len(chunks) && chunks[last+1] == chunks[first] {
			last++
		}
		text := strconv.Itoa(last - first + 1)
		if chunks[first] != "" {
			text += ":" + chunks[first]
		}
		list, first = append(list, text), last+1
	}
	return strings.Join(list, "+")
}

// ChunksBeyond lists the numbers of the chunks that a job gives back for a smaller
// select. The first chunk stays. Each chunk of the select retains the smallest chunk of
// the job that has at least as much.
func ChunksBeyond(held []HeldChunk, selection string) (numbers []uint32, err error) {
	selected, err := parseSelect(selection)
	if err != nil {
		return nil, err
	}
	type candidate struct {
		HeldChunk
		parsed resourceChunk
		chosen bool
	}
	var all []*candidate
	for _, h := range held {
		parsed, err := parseSelect(h.Select)
		if err != nil || h.Number == 0 {
			continue
		}
		all = append(all, &candidate{HeldChunk: h, parsed: parsed[0]})
	}
	for i := range selected {
		for range selected[i].count {
			var best *candidate
			for _, c := range all {
				if !c.chosen && c.parsed.covers(&selected[i], c.Node) &&
					(best == nil || c.parsed.cpus < best.parsed.cpus) {
					best = c
				}
			}
			if best == nil {
				return nil, refusalf("the job has fewer chunks besides its first than are to be kept of "+
					strings.Split(selection, "+")[i], exitIllegalValue)
			}
			best.chosen = true
		}
	}
	for _, c := range all {
		if !c.chosen {
			numbers = append(numbers, uint32(c.Number))
		}
	}
	return numbers, nil
}

// covers reports whether a chunk, which is on that node, has all that another asks for.
func (c *resourceChunk) covers(other *resourceChunk, node string) bool {
	isOn := func(host string) bool {
		return strings.EqualFold(host, node) || !strings.Contains(host, ".") &&
			strings.HasPrefix(strings.ToLower(node), strings.ToLower(host)+".")
	}
	for name, n := range other.counted {
		if c.counted[name] < n {
			return false
		}
	}
	return c.cpus >= other.cpus && c.gpus >= other.gpus && c.memory >= other.memory && c.disk >= other.disk &&
		c.nodeFileLines() >= max(other.processes, 0) &&
		!slices.ContainsFunc(other.hosts, func(h string) bool { return !isOn(h) }) &&
		!slices.ContainsFunc(other.requirements, func(r string) bool { return !slices.Contains(c.requirements, r) }) &&
		!slices.ContainsFunc(other.customWords, func(w string) bool { return !slices.Contains(c.customWords, w) })
}
