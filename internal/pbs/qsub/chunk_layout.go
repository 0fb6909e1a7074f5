package qsub

import (
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/submit/jobspec"
)

// A job of several chunks is an MPI gang with a task for each chunk, in order. The first
// task runs the script, and the others hold the resources of their machines for it.
// Chunks that must be on one machine (place=pack) are added up to one.

// maxChunks is the largest number of chunks that can start together, as in the schedd.
const maxChunks = 2048

// maxParts is the largest number of chunks in an array of jobs with several, as in the
// schedd.
const maxParts = 40_000

// layOutChunks lays out the chunks as the job's place requires.
func (s *JobSubmission) layOutChunks(chunks []resourceChunk, at chunkPlacement) ([]resourceChunk, error) {
	n := 0
	for _, c := range chunks {
		n += c.count
	}
	s.request.chunks, s.request.exclusive = n, at.isExclusive()
	switch {
	case at.isExclusive() && s.ResourceValues["app_class"] == roost.AppStream:
		return nil, refusalf("app_class=stream shares its machines with batch, and cannot have them alone",
			exitIllegalValue)
	case at.arrangement == "pack" || n == 1:
		one, err := packChunks(chunks)
		return []resourceChunk{one}, err
	case n > maxChunks:
		return nil, illegalResourceError("select",
			"the job has "+strconv.Itoa(n)+" chunks, and at most "+strconv.Itoa(maxChunks)+" can start together")
	case s.Array != nil && s.Array.Len() > maxParts/n:
		return nil, illegalResourceError("select", "an array of "+strconv.Itoa(s.Array.Len())+" jobs of "+
			strconv.Itoa(n)+" chunks each has more than the "+strconv.Itoa(maxParts)+
			" chunks that it may have; with -l place=pack, which lays those of a job on one machine, they count as one")
	case s.ResourceValues["app_class"] == roost.AppStream:
		return nil, refusalf("app_class=stream with several chunks is not supported; with -l place=pack they lie on "+
			"one machine", exitIllegalValue)
	}
	s.request.placementSet = at.groupAttribute()
	s.request.scatter = at.arrangement == "scatter" || at.arrangement == "vscatter"
	var all []resourceChunk
	for _, c := range chunks {
		for range c.count {
			one := c
			one.count = 1
			all = append(all, one)
		}
	}
	return all, nil
}

// packChunks returns one chunk with the resources of all.
func packChunks(chunks []resourceChunk) (sum resourceChunk, err error) {
	host := ""
	sum.count, sum.threads = 1, chunks[0].threads
	if sum.threads == 0 {
		sum.threads = max(chunks[0].cpus, 1)
	}
	for _, c := range chunks {
		for _, h := range c.hosts {
			if host != "" && !strings.EqualFold(h, host) {
				return sum, refusalf("Can Never Run: the chunks are to lie on one machine, and "+host+" and "+h+
					" are named", exitIllegalValue)
			}
			host = h
		}
		memory := c.memoryLimit()
		if c.count > 0 && memory > (1<<62-sum.memory)/roost.Bytes(c.count) {
			return sum, illegalResourceError("mem", "the chunks together are more than can be counted")
		}
		if c.count > 0 && c.virtualMemory > (1<<62-sum.virtualMemory)/roost.Bytes(c.count) {
			return sum, illegalResourceError("vmem", "the chunks together are more than can be counted")
		}
		if c.count > 0 && c.disk > (maxDisk-sum.disk)/roost.Bytes(c.count) {
			return sum, illegalResourceError(scratchLocal, "the chunks together are more than can be counted")
		}
		sum.disk += c.disk * roost.Bytes(c.count)
		sum.virtualMemory += c.virtualMemory * roost.Bytes(c.count)
		sum.cpus, sum.gpus = sum.cpus+c.count*c.cpus, sum.gpus+c.count*c.gpus
		sum.memory, sum.gpuMemory = sum.memory+memory*roost.Bytes(c.count), max(sum.gpuMemory, c.gpuMemory)
		sum.noGpus = sum.noGpus || c.noGpus
		sum.processes += c.count * c.nodeFileLines()
		sum.requirements, sum.hosts = append(sum.requirements, c.requirements...), append(sum.hosts, c.hosts...)
	}
	sum.processes = max(sum.processes, 1)
	return sum, nil
}

// nodeFileLines returns the number of lines that a chunk has in the node file.
func (c *resourceChunk) nodeFileLines() int {
	if c.processes < 0 {
		return min(c.cpus, 1)
	}
	return c.processes
}

// ProcessCount returns the number of processes of all chunks of a select. stated is false
// if no chunk states one.
func ProcessCount(selection string) (n int, stated bool) {
	chunks, err := parseSelect(selection)
	if err != nil {
		return 0, false
	}
	for i := range chunks {
		n, stated = n+chunks[i].count*chunks[i].nodeFileLines(), stated || chunks[i].processes >= 0
	}
	return n, stated
}

// RequestsNoCPU reports whether a select requests no processor. A job of Roost has one by
// default.
func RequestsNoCPU(selection string) bool {
	chunks, err := parseSelect(selection)
	return err == nil && selection != "" && !slices.ContainsFunc(chunks, func(c resourceChunk) bool {
		return c.cpus > 0
	})
}

// memoryLimit returns the memory limit of a chunk; 0 means the default.
func (c *resourceChunk) memoryLimit() roost.Bytes {
	if c.memory == 0 {
		return c.virtualMemory // a limit on address space limits memory
	}
	return c.memory
}

// machineConditions returns the requirements on the machine of a chunk, as an expression;
// "" for none.
func (c *resourceChunk) machineConditions() string {
	all := slices.Clone(c.requirements)
	for _, h := range c.hosts {
		all = append(all, isMachineName(h))
	}
	if all = slices.Compact(slices.Sorted(slices.Values(all))); len(all) == 0 {
		return ""
	}
	return "(" + strings.Join(all, ") && (") + ")"
}

// gangColumns returns the columns in which the chunks of a gang differ.
func gangColumns(chunks []resourceChunk) (list []jobspec.TaskColumn) {
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for _, of := range []struct {
		name  string
		value func(c *resourceChunk) string
	}{
		{roost.AttrRequestCpus, func(c *resourceChunk) string { return number(int64(max(c.cpus, 1))) }},
		{roost.AttrRequestMemory, func(c *resourceChunk) string { return number(int64(c.memoryRequest())) }},
		{roost.AttrRequestDisk, func(c *resourceChunk) string {
			return number(int64((c.disk + roost.KiB - 1) / roost.KiB * roost.KiB))
		}},
		{roost.AttrRequestGpus, func(c *resourceChunk) string { return number(int64(c.gpus)) }},
		{roost.AttrRequestGpuMem, func(c *resourceChunk) string { return number(int64(c.gpuMemory)) }},
		{roost.AttrProcesses, func(c *resourceChunk) string { return number(int64(c.nodeFileLines())) }},
		{roost.AttrRequirements, func(c *resourceChunk) string {
			if e := c.machineConditions(); e != "" {
				return e
			}
			return "true"
		}},
	} {
		values, differ := make([]string, len(chunks)), false
		for i := range chunks {
			values[i] = of.value(&chunks[i])
			differ = differ || values[i] != values[0]
		}
		if differ {
			list = append(list, jobspec.TaskColumn{Name: of.name, Values: values})
		}
	}
	return list
}

// memoryRequest returns the memory of a chunk in whole MiB.
func (c *resourceChunk) memoryRequest() roost.Bytes {
	memory := c.memoryLimit()
	if memory == 0 {
		memory = jobspec.StandardDefaults().Memory
	}
	return (memory + roost.MiB - 1) / roost.MiB * roost.MiB
}

// addJobWideShare distributes what the whole job requests over its chunks. Memory, disk
// and GPUs are divided equally (PBS User's Guide, conversion of node specifications); the
// rest goes to the first chunk.
func addJobWideShare(chunks []resourceChunk, name, v string) {
	n := 0
	for _, c := range chunks {
		n += c.count
	}
	size, isSize := parseSize(v)
	count, _ := parseCount(v)
	switch {
	case n > 1 && (name == "mem" || name == "vmem" || name == scratchLocal) && isSize:
		v = strconv.FormatInt((int64(size)+int64(n)*int64(roost.KiB)-1)/(int64(n)*int64(roost.KiB)), 10) + "kb"
	case n > 1 && name == "ngpus" && count%n == 0:
		v = strconv.Itoa(count / n)
	default:
		chunks = chunks[:1]
	}
	for i := range chunks {
		chunks[i].setKnownResource(name, v)
	}
}
