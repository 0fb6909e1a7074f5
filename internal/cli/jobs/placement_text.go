package jobs

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// placedText says it for people: "unit gpu0, cores 0-3, GPU 0 (20GiB of NVIDIA A100)".
func placedText(p *scheddapi.Placed) string {
	var parts []string
	if units := p.GetUnits(); len(units) == 1 {
		parts = append(parts, "unit "+units[0])
	} else if len(units) > 1 {
		parts = append(parts, "units "+strings.Join(units, " and "))
	}
	if cores := p.GetCores(); len(cores) == 1 {
		parts = append(parts, fmt.Sprintf("core %d", cores[0]))
	} else if len(cores) > 1 {
		parts = append(parts, "cores "+rangeText(cores))
	}
	for _, g := range p.GetGpus() {
		what := fmt.Sprintf("%v of ", roost.Bytes(g.GetMemory()))
		if g.GetWhole() {
			what = "all of "
		}
		parts = append(parts, fmt.Sprintf("GPU %d (%s)", g.GetIndex(), strings.TrimSuffix(what+g.GetModel(), " of ")))
	}
	return document.PrintableText(strings.Join(parts, ", "))
}

// portsText says which ports a task has: "http n1:20001, ssh n1:2222".
func portsText(p *scheddapi.Placed) string {
	var parts []string
	for _, port := range p.GetPorts() {
		parts = append(parts, port.GetName()+" "+document.PortAddressText(port))
	}
	return document.PrintableText(strings.Join(parts, ", "))
}

// rangeText writes rising numbers as "0-3,8".
func rangeText(list []uint32) string {
	var parts []string
	for i := 0; i < len(list); {
		last := i
		for last+1 < len(list) && list[last+1] == list[last]+1 {
			last++
		}
		text := fmt.Sprint(list[i])
		if last > i {
			text += fmt.Sprintf("-%d", list[last])
		}
		parts = append(parts, text)
		i = last + 1
	}
	return strings.Join(parts, ",")
}

// chunksText tells people what resources a job has or is to have: "2 of 4 cpus, 1GiB on
// n1, n2".
func chunksText(chunks []*scheddapi.Chunk) string {
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
