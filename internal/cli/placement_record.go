package cli

import (
	"fmt"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
)

// placedRecord is a placement for programs.
type placedRecord struct {
	Units []string          `json:"units"`
	Cores []uint32          `json:"cores,omitempty"`
	GPUs  []placedGPURecord `json:"gpus,omitempty"`
}

type placedGPURecord struct {
	UUID   string `json:"uuid"`
	Index  uint32 `json:"index"`
	Model  string `json:"model,omitempty"`
	Memory int64  `json:"memory_bytes"`
	Whole  bool   `json:"whole"`
}

func placedRecordOf(p *wire.Placed) *placedRecord {
	if p == nil {
		return nil
	}
	r := &placedRecord{Units: p.GetUnits(), Cores: p.GetCores()}
	for _, g := range p.GetGpus() {
		r.GPUs = append(r.GPUs, placedGPURecord{g.GetUuid(), g.GetIndex(), g.GetModel(), g.GetMemory(), g.GetWhole()})
	}
	return r
}

// placedText says it for people: "unit gpu0, cores 0-3, GPU 0 (20GiB of NVIDIA A100)".
func placedText(p *wire.Placed) string {
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
	return printableText(strings.Join(parts, ", "))
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

// execVnode is where a task runs as PBS writes it: a chunk for each resource unit,
// "(n1[gpu0]:ncpus=2:mem=1024mb:ngpus=1)", with what was asked for in the first.
func execVnode(s *wire.JobStatus) string {
	if len(s.GetChunks()) > 0 {
		return execVnodeOfChunks(s.GetChunks())
	}
	if s.GetNode() == "" || hasNoNode(s) {
		return ""
	}
	return vnodeText(s.GetNode(), s.GetRequest().Vector(), s.GetPlaced())
}

// vnodeText is a part of a node as PBS writes it: "(n1:ncpus=4:mem=1048576kb)", by its
// resource units where the node has several.
func vnodeText(node string, r roost.Resources, placed *wire.Placed) string {
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
