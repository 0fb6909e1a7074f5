package ledger

import (
	"fmt"
	"time"

	"github.com/roost-batch/roost"
)

// Extent is an amount of resources for a length of time, each nil for not set.
type Extent struct {
	CPUs     *Cores       `json:"cpus,omitempty"`
	Memory   *roost.Bytes `json:"memory_bytes,omitempty"`
	Disk     *roost.Bytes `json:"disk_bytes,omitempty"`
	GPUs     *int64       `json:"gpus,omitempty"`
	Walltime *int64       `json:"walltime_seconds,omitempty"`
	Nodes    *int64       `json:"nodes,omitempty"` // machines of a program that runs on several; nodect
}

// bounds are the dimensions of an extent, with its walltime.
func (e Extent) bounds() []Dimension {
	all := (Amounts{CPUs: e.CPUs, Memory: e.Memory, Disk: e.Disk, GPUs: e.GPUs}).Bounds()
	if e.Walltime != nil {
		text := fmt.Sprintf("%d s", *e.Walltime)
		if *e.Walltime >= 0 && *e.Walltime <= mostWalltime {
			text = (time.Duration(*e.Walltime) * time.Second).String()
		}
		all = append(all, Dimension{"walltime", *e.Walltime, text})
	}
	if e.Nodes != nil {
		all = append(all, Dimension{"nodes", *e.Nodes, fmt.Sprint(*e.Nodes)})
	}
	return all
}

// mostWalltime is in seconds: a hundred years.
const mostWalltime = 100 * 366 * 24 * 3600

func (e Extent) check() error {
	if err := (Amounts{CPUs: e.CPUs, Memory: e.Memory, Disk: e.Disk, GPUs: e.GPUs}).check(); err != nil {
		return err
	}
	if w := e.Walltime; w != nil && (*w < 1 || *w > mostWalltime) {
		return fmt.Errorf("a walltime of %d seconds: it is between 1 and %d", *w, int64(mostWalltime))
	}
	if n := e.Nodes; n != nil && (*n < 0 || *n > mostCount) {
		return fmt.Errorf("%d nodes: it is between 0 and %d", *n, mostCount)
	}
	return nil
}

// above names a dimension in which e is more than o, if both say.
func (e Extent) above(o Extent) error {
	for _, d := range e.bounds() {
		for _, m := range o.bounds() {
			if d.Name == m.Name && d.Value > m.Value {
				return fmt.Errorf("%s of %s is more than %s", d.Name, d.Text, m.Text)
			}
		}
	}
	return nil
}

func checkExtents(standard, least, most Extent) error {
	for i, e := range []Extent{standard, least, most} {
		if err := e.check(); err != nil {
			return fmt.Errorf("%s: %w", [...]string{"default", "least", "most"}[i], err)
		}
	}
	return nil
}
