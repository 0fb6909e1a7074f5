package config

import (
	"fmt"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost/gpu"
)

// Queue says how many batch tasks may wait on a machine, for each of its resource units. The zero value lets none wait.
type Queue struct {
	Length   int           // how many
	Auto     bool          // instead: as many as end while a schedd sends the next
	MaxWait  time.Duration // none that would wait longer, as predicted; 0: however long
	RunLimit int           // how many may run at once; 0: as many as fit
}

// maxQueueLength bounds what may wait for one unit: each has a starter.
const maxQueueLength = 256

// readUnits reads how a machine is cut.
func (s *section) readUnits(d *Startd) {
	to := &d.Layout
	s.set("layout", `"pinned"`, func(text string) (err error) {
		if text == "" {
			return fmt.Errorf("it is empty")
		}
		to.Shape, err = gpu.ParseShape(text)
		return err
	})
	s.count("cores_per_gpu", &to.CoresPerGPU)
	s.set("cpu_units", `2, or "numa" for one for each memory node`, func(text string) error {
		if text == "numa" {
			to.CPUUnits = gpu.PerNode
			return nil
		}
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 || n > 1024 {
			return fmt.Errorf("%s is neither a whole number from 1 to 1024 nor \"numa\"", text)
		}
		to.CPUUnits = int(n)
		return nil
	})
	s.truth("pin", &d.Pin)
	if attr, ok := s.body.Attributes["pin"]; ok && d.Pin && to.Shape != gpu.Shared {
		s.add(attr.NameRange, "leave the line out", "pin says nothing for layout %v: its tasks are bound to the cores of their unit", to.Shape)
	}
	if attr, ok := s.body.Attributes["cores_per_gpu"]; ok && to.Shape != gpu.Pinned {
		s.add(attr.NameRange, `add layout = "pinned", or leave the line out`, "cores_per_gpu says nothing for layout %v", to.Shape)
	}
	if attr, ok := s.body.Attributes["cpu_units"]; ok && to.Shape == gpu.Even {
		s.add(attr.NameRange, `use layout = "pinned", or leave the line out`, "cpu_units says nothing for layout even: all cores are the GPUs'")
	}
}

func (s *section) readQueue(b *hclsyntax.Block, to *Queue) {
	q := s.inside(b)
	q.set("length", `4, or "auto"`, func(text string) error {
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
	q.duration("max_wait", `"10m"`, &to.MaxWait)
	q.count("run_limit", &to.RunLimit)
	q.done()
	if len(b.Body.Attributes) == 0 {
		s.add(b.TypeRange, `write how many may wait, as in: queue { length = "auto" }`, "the queue says nothing")
	}
}

func (w writer) units(l gpu.Layout) {
	if l.Shape != gpu.Shared {
		w.text("layout", l.Shape.String())
	}
	if l.CoresPerGPU != 0 {
		w.number("cores_per_gpu", l.CoresPerGPU)
	}
	switch {
	case l.CPUUnits == gpu.PerNode:
		w.text("cpu_units", "numa")
	case l.CPUUnits != 0:
		w.number("cpu_units", l.CPUUnits)
	}
}

func (w writer) queue(q Queue) {
	if q == (Queue{}) {
		return
	}
	b := w.block("queue")
	switch {
	case q.Auto:
		b.text("length", "auto")
	case q.Length != 0:
		b.number("length", q.Length)
	}
	b.duration("max_wait", q.MaxWait)
	if q.RunLimit != 0 {
		b.number("run_limit", q.RunLimit)
	}
}

func (w writer) number(name string, n int) {
	w.to.SetAttributeValue(name, cty.NumberIntVal(int64(n)))
}
