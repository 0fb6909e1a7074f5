package cli

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost/internal/wire"
)

// execHostOfChunks is exec_host of a job of several chunks: "n1/0*4+n2/0+n2/1", the
// chunks of a host counted from 0, and how many CPUs where that is not one. It is empty
// until all are known.
func execHostOfChunks(chunks []*wire.Chunk) string {
	var list []string
	had := map[string]int{}
	for _, c := range chunks {
		if c.GetNode() == "" {
			return ""
		}
		for range c.GetCount() {
			one := fmt.Sprintf("%s/%d", c.GetNode(), had[c.GetNode()])
			if cpus := (c.GetRequest().GetMilliCpu() + 999) / 1000; cpus > 1 {
				one += fmt.Sprintf("*%d", cpus)
			}
			had[c.GetNode()]++
			list = append(list, one)
		}
	}
	return strings.Join(list, "+")
}

// execVnodeOfChunks is exec_vnode of such a job.
func execVnodeOfChunks(chunks []*wire.Chunk) string {
	var list []string
	for _, c := range chunks {
		if c.GetNode() == "" {
			return ""
		}
		for range c.GetCount() {
			list = append(list, vnodeText(c.GetNode(), c.GetRequest().Vector(), c.GetPlaced()))
		}
	}
	return strings.Join(list, "+")
}

// chunksText tells people what a job has, or is to have, of which machines: "2 × 4 cpus,
// 1 GiB on n1, n2".
func chunksText(chunks []*wire.Chunk) string {
	type kind struct {
		count uint32
		nodes []string
	}
	var order []string
	kinds := map[string]*kind{}
	for _, c := range chunks {
		what := c.GetRequest().Vector().String()
		k := kinds[what]
		if k == nil {
			k = &kind{}
			kinds[what], order = k, append(order, what)
		}
		k.count += c.GetCount()
		if n := c.GetNode(); n != "" && (len(k.nodes) == 0 || k.nodes[len(k.nodes)-1] != n) {
			k.nodes = append(k.nodes, n)
		}
	}
	for i, what := range order {
		k := kinds[what]
		if order[i] = fmt.Sprintf("%d of %s", k.count, what); len(k.nodes) > 0 {
			order[i] += " on " + strings.Join(k.nodes, ", ")
		}
	}
	return strings.Join(order, "; ")
}
