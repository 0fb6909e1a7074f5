package packing

import (
	"io"

	"github.com/roost-batch/roost"
)

// The openb trace is from a GPU cluster of Alibaba in 2023, published with Weng et al. It
// has a list of nodes and lists of pods, in CSV with a header line. Columns are found by
// name. An error has file, line and column, and wraps [roost.Invalid].

// TraceNode is a machine of the trace.
type TraceNode struct {
	Name     string
	CPU      roost.MilliCPU
	Memory   roost.Bytes
	GPUs     int
	GPUModel string // model of its GPUs
}

// TracePod is a task of the trace.
type TracePod struct {
	Name      string
	CPU       roost.MilliCPU
	Memory    roost.Bytes
	GPUs      int
	GPUMilli  int      // thousandths of each of its GPUs; 1000 is a whole one
	GPUModels []string // GPU models that it may use; empty: any
	QoS       string   // "LS", "BE", "Burstable", "Guaranteed", or "" if not stated
	Created   int64    // creation time in seconds
	// seconds of its life, from when it got its machine, or from its creation if it never
	// got one; -1: not stated
	Duration int64
	Line     int // line in the list
}

// Bounds on the trace. Larger values are treated as errors.
const (
	maxListRows = 1_000_000
	maxCores    = 10_000
	maxMemory   = 1 << 20 // GiB
	maxGPUs     = 64
)

// ReadNodes reads a list of nodes. The file name appears in errors.
func ReadNodes(file string, r io.Reader) (list []TraceNode, err error) {
	t, err := newTable(file, r, []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}, nil)
	if err != nil {
		return nil, err
	}
	for t.nextRow() {
		n := TraceNode{
			Name: t.uniqueWord("sn"), CPU: roost.MilliCPU(t.number("cpu_milli", 1, maxCores*1000)),
			Memory: roost.Bytes(t.number("memory_mib", 1, maxMemory<<10)) * roost.MiB,
			GPUs:   int(t.number("gpu", 0, maxGPUs)),
		}
		if n.GPUs > 0 {
			n.GPUModel = t.word("model")
		}
		list = append(list, n)
	}
	return list, t.firstError()
}

// ReadPods reads a list of pods. Columns beyond a pod's demand are optional.
func ReadPods(file string, r io.Reader) (list []TracePod, err error) {
	t, err := newTable(file, r, []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"},
		[]string{"gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"})
	if err != nil {
		return nil, err
	}
	for t.nextRow() {
		p := TracePod{
			Name: t.uniqueWord("name"), CPU: roost.MilliCPU(t.number("cpu_milli", 0, maxCores*1000)),
			Memory: roost.Bytes(t.number("memory_mib", 0, maxMemory<<10)) * roost.MiB,
			GPUs:   int(t.number("num_gpu", 0, maxGPUs)), GPUMilli: int(t.number("gpu_milli", 0, 1000)),
		}
		switch {
		case p.GPUs > 0 && p.GPUMilli == 0:
			t.failColumn("gpu_milli", "it asks for %d GPUs, and for nothing of them", p.GPUs)
		case p.GPUs == 0 && p.GPUMilli > 0:
			t.failColumn("gpu_milli", "it asks for %d thousandths of no GPU", p.GPUMilli)
		case p.CPU == 0 && p.Memory == 0 && p.GPUs == 0:
			t.failColumn("cpu_milli", "it asks for nothing")
		}
		p.GPUModels, p.QoS = t.words("gpu_spec"), t.choice("qos", []string{"LS", "BE", "Burstable", "Guaranteed"})
		t.podTimes(&p)
		list = append(list, p)
	}
	return list, t.firstError()
}

// podTimes reads the creation time and the duration of a pod.
func (t *csvTable) podTimes(p *TracePod) {
	p.Line, _ = t.csv.FieldPos(0)
	p.Duration = -1
	began := int64(-1)
	for _, name := range []string{"creation_time", "scheduled_time", "deletion_time"} {
		if t.text(name) == "" {
			continue
		}
		at := t.number(name, 0, 1<<40)
		switch {
		case name == "creation_time":
			p.Created, began = at, at
		case at < p.Created:
			t.failColumn(name, "it is before the pod was created, at %d", p.Created)
		case name == "scheduled_time":
			began = at
		case at < began:
			t.failColumn(name, "it is before the pod was scheduled, at %d", began)
		case began >= 0:
			p.Duration = at - began
		}
	}
}
