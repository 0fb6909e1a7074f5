package pbs

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// execHostOfChunks is exec_host of a job of several chunks: "n1/0*4+n2/0+n2/1". The
// chunks of a host count from 0, and "*" gives the CPUs where that is not one. It is
// empty until all are known.
func execHostOfChunks(chunks []*scheddapi.Chunk) string {
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
func execVnodeOfChunks(chunks []*scheddapi.Chunk) string {
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

// execVnode is where a task runs as PBS writes it:
// "(n1[gpu0]:ncpus=2:mem=1024mb:ngpus=1)". There is a chunk for each resource unit, with
// the request in the first.
func execVnode(s *scheddapi.JobStatus) string {
	if len(s.GetChunks()) > 0 {
		return execVnodeOfChunks(s.GetChunks())
	}
	if s.GetNode() == "" || hasNoNode(s) {
		return ""
	}
	return vnodeText(s.GetNode(), s.GetRequest().Vector(), s.GetPlaced())
}

// vnodeText is a part of a node as PBS writes it: "(n1:ncpus=4:mem=1048576kb)". A node of
// several resource units has a part for each.
func vnodeText(node string, r roost.Resources, placed *scheddapi.Placed) string {
	amounts := fmt.Sprintf(":ncpus=%v:mem=%dmb", r.CPU, (r.Memory+roost.MiB-1)/roost.MiB)
	if r.GPUs > 0 {
		amounts += fmt.Sprintf(":ngpus=%d", r.GPUs)
	}
	if r.GPUMemory > 0 {
		amounts += fmt.Sprintf(":gpu_mem=%dmb", (r.GPUMemory+roost.MiB-1)/roost.MiB)
	}
	units := placed.GetUnits()
	if len(units) == 0 {
		return "(" + node + amounts + ")"
	}
	chunks := make([]string, len(units))
	for i, unit := range units {
		chunks[i] = fmt.Sprintf("(%s[%s]%s)", node, unit, amounts)
		amounts = ""
	}
	return strings.Join(chunks, "+")
}

// hasNoNode reports whether a job waits, so that it is on no node. The record still names
// the node of its last attempt.
func hasNoNode(s *scheddapi.JobStatus) bool {
	state := s.GetState()
	return state == roost.Idle.String() || state == roost.Held.String() || state == roost.Blocked.String()
}
