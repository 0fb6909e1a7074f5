package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost"
)

// chunkRequest is what a chunk requests of one machine, and the number of such chunks. A
// gang has the tasks of all chunks, in order.
type chunkRequest struct {
	count     int
	cpus      int
	perNode   int // lines in the node file
	gpus      int
	memory    roost.Bytes
	virtual   roost.Bytes
	gpuMemory roost.Bytes
	require   []machineCondition
}

// readChunks reads chunks such as select=2:ncpus=4:mem=8gb+1:ncpus=1 and
// nodes=2:ppn=4:gpus=1.
func (x *pbsScript) readChunks(v string, nodes bool) bool {
	x.layoutLine, x.parts = x.directive, nil
	if nodes {
		x.arrangement = "scatter"
	}
	outer := x.currentPart
	defer func() { x.currentPart = outer }()
	for _, c := range strings.Split(v, "+") {
		one := chunkRequest{count: 1}
		x.currentPart = &one
		if !x.readChunk(c, nodes) {
			x.parts = nil
			return false
		}
		x.parts = append(x.parts, one)
	}
	return true
}

func (x *pbsScript) readChunk(c string, nodes bool) bool {
	c, mark, marked := strings.Cut(c, "#")
	if marked && mark == "excl" {
		x.setExclusive()
	}
	for i, part := range strings.Split(c, ":") {
		name, value, set := strings.Cut(strings.TrimSpace(part), "=")
		number, err := strconv.ParseUint(name, 10, 16)
		switch {
		case i == 0 && !set && err == nil:
			if number == 0 || number > maxGang {
				return x.noteDirectiveLost("From 1 to 2048 tasks start together.")
			}
			x.currentPart.count = int(number)
		case !set && nodes && name == "shared": // the default
		case !set && nodes && (name == "excl" || name == "exclusive"):
			x.setExclusive()
		case !set && nodes && i == 0 && hostName().MatchString(name):
			x.setHost(name)
		case !set && nodes && hostName().MatchString(name):
			x.setFeature(name)
		case !set:
			return x.noteDirectiveLost("This chunk is not understood.")
		default:
			x.setResource(name, value)
		}
	}
	return true
}

// maxGang is the largest number of tasks that can start together.
const maxGang = 2048

// placeChunks completes the chunks. It divides what the job as a whole requests among
// them, and merges those that must be on one machine.
func (x *pbsScript) placeChunks() []chunkRequest {
	parts := slices.Clone(x.parts)
	if len(parts) == 0 {
		parts = []chunkRequest{{count: 1}}
	}
	n := 0
	for _, p := range parts {
		n += p.count
	}
	whole := x.jobWide
	for i := range parts {
		p := &parts[i]
		if i == 0 {
			p.cpus, p.perNode, p.gpus = max(p.cpus, whole.cpus), max(p.perNode, whole.perNode), max(p.gpus, whole.gpus)
			p.require = append(p.require, whole.require...)
		}
		share := func(of *roost.Bytes, all roost.Bytes) {
			if *of == 0 && all > 0 {
				*of = (all + roost.Bytes(n) - 1) / roost.Bytes(n)
			}
		}
		share(&p.memory, whole.memory)
		share(&p.virtual, whole.virtual)
		p.gpuMemory = max(p.gpuMemory, whole.gpuMemory)
		if p.memory == 0 {
			p.memory = p.virtual
		}
		if p.memory == 0 {
			p.memory = cmp.Or(x.process, x.processVirtual) * roost.Bytes(max(p.perNode, 1))
		}
	}
	if n == 1 || x.arrangement == "pack" || len(x.parts) == 0 {
		return []chunkRequest{mergeChunks(parts)}
	}
	return parts
}

// mergeChunks returns one chunk with everything that some chunks request.
func mergeChunks(parts []chunkRequest) chunkRequest {
	sum := chunkRequest{count: 1}
	for _, p := range parts {
		k := roost.Bytes(p.count)
		sum.cpus, sum.gpus, sum.perNode = sum.cpus+p.count*max(p.cpus, 1), sum.gpus+p.count*p.gpus,
			sum.perNode+p.count*max(p.perNode, 1)
		sum.memory, sum.virtual, sum.gpuMemory = sum.memory+k*p.memory, sum.virtual+k*p.virtual,
			max(sum.gpuMemory, p.gpuMemory)
		sum.require = append(sum.require, p.require...)
	}
	if len(parts) == 1 && parts[0].count == 1 { // leave unset what was not requested
		sum.cpus, sum.perNode = parts[0].cpus, parts[0].perNode
	}
	return sum
}

// largestChunk returns the largest request of any of the parts for each resource.
func largestChunk(parts []chunkRequest) chunkRequest {
	most := chunkRequest{}
	for _, p := range parts {
		most.count += p.count
		most.cpus, most.perNode, most.gpus = max(most.cpus, p.cpus), max(most.perNode, p.perNode),
			max(most.gpus, p.gpus)
		most.memory, most.virtual, most.gpuMemory = max(most.memory, p.memory), max(most.virtual, p.virtual),
			max(most.gpuMemory, p.gpuMemory)
		most.require = append(most.require, p.require...)
	}
	return most
}

// chunkSettings returns the part's requests as settings of a job or an override.
func (p *chunkRequest) chunkSettings() []blockEntry {
	var list []blockEntry
	add := func(name, source string, set bool) {
		if set {
			list = append(list, blockEntry{name, source})
		}
	}
	add("cpus", strconv.Itoa(p.cpus), p.cpus > 0)
	add("memory", quotedText(sizeText(p.memory)), p.memory > 0)
	add("gpus", strconv.Itoa(p.gpus), p.gpus > 0)
	add("gpu_memory", quotedText(sizeText(p.gpuMemory)), p.gpuMemory > 0)
	add("processes", strconv.Itoa(p.perNode), p.perNode > 0)
	if all := withoutDuplicates(p.require); len(all) > 0 {
		add("requirements", joinConditions(all), true)
	}
	return list
}

// withoutDuplicates removes repeated conditions.
func withoutDuplicates(all []machineCondition) (out []machineCondition) {
	for _, c := range all {
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// overrideSettings returns the settings in which the part differs from the first one.
// They are for its tasks, which begin at index from.
func (p *chunkRequest) overrideSettings(first *chunkRequest, from int) []blockEntry {
	usual := map[string]string{"cpus": "1", "memory": `"256MiB"`, "gpus": "0", "processes": "1", "requirements": "true"}
	list := []blockEntry{{"tasks", quotedText(fmt.Sprintf("%d-%d", from, from+p.count-1))}}
	own, before := p.chunkSettings(), map[string]string{}
	for _, e := range first.chunkSettings() {
		before[e.name] = e.value
	}
	for _, e := range own {
		if before[e.name] != e.value {
			list = append(list, e)
		}
		delete(before, e.name)
	}
	for _, name := range []string{"cpus", "memory", "gpus", "processes", "requirements"} {
		if v, ok := before[name]; ok && v != usual[name] {
			list = append(list, blockEntry{name, usual[name]})
		}
	}
	if len(list) == 1 {
		return nil
	}
	return list
}

// setGang lays the parts out as tasks that start together. The first task runs the
// script.
func (x *pbsScript) setGang(parts []chunkRequest) {
	j, n := x.job, 0
	for _, p := range parts {
		n += p.count
	}
	if n > maxGang {
		x.noteLost(x.layoutLine.line, x.layoutLine.text, "At most 2048 tasks start together.")
		return
	}
	j.setInt("count", n)
	j.setSource("gang", "true")
	j.setSource("led", "true")
	if x.arrangement == "scatter" || x.arrangement == "vscatter" {
		j.setSource("apart", "true")
	}
	from := 0
	for i := range parts {
		p := &parts[i]
		if i > 0 {
			if o := p.overrideSettings(&parts[0], from); o != nil {
				j.overrides = append(j.overrides, o)
			}
		}
		from += p.count
	}
}
