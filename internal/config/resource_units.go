package config

import (
	"fmt"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost/gpu"
)

// NodeQueue configures the node queue of each resource unit, in which batch tasks wait.
// The zero value lets none wait.
type NodeQueue struct {
	Length   int           // the most tasks that wait
	Auto     bool          // instead of Length: as many as end while a schedd sends the next task
	MaxWait  time.Duration // tasks with a longer predicted wait are refused; 0: no limit
	RunLimit int           // the most tasks that run at once; 0: as many as fit
}

// maxQueueLength bounds the tasks that wait for one unit, because each has a starter.
const maxQueueLength = 256

// readUnits reads how a machine is cut into resource units.
func (s *blockReader) readUnits(d *StartdSettings) {
	to := &d.Layout
	s.readSetting("layout", `"pinned"`, func(text string) (err error) {
		if text == "" {
			return fmt.Errorf("it is empty")
		}
		to.Shape, err = gpu.ParseUnitLayout(text)
		return err
	})
	s.readCount("cores_per_gpu", &to.CoresPerGPU)
	s.readSetting("cpu_units", `2, or "numa" for one for each memory node`, func(text string) error {
		if text == "numa" {
			to.CPUUnits = gpu.OnePerMemoryNode
			return nil
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 || n > 1024 {
			return fmt.Errorf("%s is neither a whole number from 1 to 1024 nor \"numa\"", text)
		}
		to.CPUUnits = int(n)
		return nil
	})
	s.readBool("pin", &d.Pin)
	if attr, ok := s.body.Attributes["pin"]; ok && d.Pin && to.Shape != gpu.SharedLayout {
		s.addProblem(attr.NameRange, "leave the line out",
			"pin has no effect with layout %v: its tasks are bound to the cores of their unit", to.Shape)
	}
	if attr, ok := s.body.Attributes["cores_per_gpu"]; ok && to.Shape != gpu.PinnedLayout {
		s.addProblem(attr.NameRange, `add layout = "pinned", or leave the line out`,
			"cores_per_gpu has no effect with layout %v", to.Shape)
	}
	if attr, ok := s.body.Attributes["cpu_units"]; ok && to.Shape == gpu.EvenLayout {
		s.addProblem(attr.NameRange, `use layout = "pinned", or leave the line out`,
			"cpu_units has no effect with layout even: all cores are the GPUs'")
	}
}

func (s *blockReader) readQueue(b *hclsyntax.Block, to *NodeQueue) {
	q := s.innerBlock(b)
	q.readSetting("length", `4, or "auto"`, func(text string) error {
		if text == "auto" {
			to.Auto = true
			return nil
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 || n > maxQueueLength {
			return fmt.Errorf("%s is neither a whole number up to %d nor \"auto\"", text, maxQueueLength)
		}
		to.Length = int(n)
		return nil
	})
	q.readDuration("max_wait", `"10m"`, &to.MaxWait)
	q.readCount("run_limit", &to.RunLimit)
	q.reportUnknown()
	if len(b.Body.Attributes) == 0 {
		s.addProblem(b.TypeRange, `write how many may wait, as in: queue { length = "auto" }`,
			"the queue block is empty")
	}
}

func (w fileWriter) writeUnits(l gpu.LayoutConfig) {
	if l.Shape != gpu.SharedLayout {
		w.writeText("layout", l.Shape.String())
	}
	if l.CoresPerGPU != 0 {
		w.writeNumber("cores_per_gpu", l.CoresPerGPU)
	}
	switch {
	case l.CPUUnits == gpu.OnePerMemoryNode:
		w.writeText("cpu_units", "numa")
	case l.CPUUnits != 0:
		w.writeNumber("cpu_units", l.CPUUnits)
	}
}

func (w fileWriter) writeQueue(q NodeQueue) {
	if q == (NodeQueue{}) {
		return
	}
	b := w.writeBlock("queue")
	switch {
	case q.Auto:
		b.writeText("length", "auto")
	case q.Length != 0:
		b.writeNumber("length", q.Length)
	}
	b.writeDuration("max_wait", q.MaxWait)
	if q.RunLimit != 0 {
		b.writeNumber("run_limit", q.RunLimit)
	}
}

func (w fileWriter) writeNumber(name string, n int) {
	w.to.setAttribute(name, strconv.Itoa(n))
}
