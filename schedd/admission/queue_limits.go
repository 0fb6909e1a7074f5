package admission

import (
	"fmt"
	"maps"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// checkQueueLimits says what is too much or too little of a job for a queue, if anything
// is. What the queue says goes before what holds for all.
func checkQueueLimits(p *wire.Policy, q *wire.JobQueue, spec *queue.SubmitSpec) error {
	kinds, err := queue.TaskKinds(spec)
	if err != nil {
		return err
	}
	all := p.GetAll()
	tasks := 0
	for _, k := range kinds {
		if err := checkTask(overlay(q.GetLeast(), all.GetLeast()), overlay(q.GetMost(), all.GetMost()), k); err != nil {
			return fmt.Errorf("%w: %w", roost.Exhausted, err)
		}
		if tasks += k.Tasks; k.Gang > 1 {
			tasks = 1 // one program on several machines is no array
		}
	}
	most := q.MaxArray
	if most == nil && all != nil {
		most = all.MaxArray
	}
	if most != nil && tasks > 1 && int64(tasks) > *most {
		return fmt.Errorf("%w: an array of %d tasks, and %d is the most here", roost.Exhausted, tasks, *most)
	}
	return nil
}

// overlay is an extent with what it does not say from an outer one.
func overlay(own, outer *wire.Extent) *wire.Extent {
	if own == nil {
		own = &wire.Extent{}
	}
	if outer == nil {
		return own
	}
	or := func(a, b *int64) *int64 {
		if a != nil {
			return a
		}
		return b
	}
	others := maps.Clone(outer.GetOthers())
	if others == nil {
		others = map[string]int64{}
	}
	maps.Copy(others, own.GetOthers())
	return &wire.Extent{
		Others: others, MilliCpus: or(own.MilliCpus, outer.MilliCpus), Memory: or(own.Memory, outer.Memory),
		Disk: or(own.Disk, outer.Disk), Gpus: or(own.Gpus, outer.Gpus),
		WalltimeS: or(own.WalltimeS, outer.WalltimeS), Nodes: or(own.Nodes, outer.Nodes),
	}
}

// checkTask holds a task, or all of a program that runs on several machines, against
// bounds.
func checkTask(least, most *wire.Extent, k queue.UniformTasks) error {
	size := func(n int64) string { return roost.Bytes(n).String() }
	count := func(n int64) string { return fmt.Sprint(n) }
	parts, who := int64(max(k.Gang, 1)), "a task asks"
	if k.Gang > 1 {
		who = fmt.Sprintf("its %d parts together ask", k.Gang)
	}
	for _, d := range [...]struct {
		name            string
		asks            int64
		atLeast, atMost *int64
		text            func(int64) string
		endless         bool // 0 means without an end
	}{
		{"cpus", int64(k.CPU) * parts, least.MilliCpus, most.MilliCpus, func(n int64) string {
			return roost.MilliCPU(n).String()
		}, false},
		{"memory", int64(k.Memory) * parts, least.Memory, most.Memory, size, false},
		{"disk", int64(k.Disk) * parts, least.Disk, most.Disk, size, false},
		{"gpus", int64(k.GPUs) * parts, least.Gpus, most.Gpus, count, false},
		{"walltime", int64(k.Walltime / time.Second), least.WalltimeS, most.WalltimeS, func(n int64) string {
			return (time.Duration(n) * time.Second).String()
		}, true},
		{"nodes", parts, least.Nodes, most.Nodes, count, false},
	} {
		switch {
		case d.atMost != nil && (d.asks > *d.atMost || d.endless && d.asks == 0):
			return fmt.Errorf("%s for %s of %s, and %s is the most here", who, amountOf(d.asks, d.endless, d.text),
				d.name, d.text(*d.atMost))
		case d.atLeast != nil && d.asks < *d.atLeast && !(d.endless && d.asks == 0):
			return fmt.Errorf("%s for %s of %s, and %s is the least here", who, d.text(d.asks), d.name,
				d.text(*d.atLeast))
		}
	}
	return checkOtherResources(least, most, k)
}

func amountOf(n int64, endless bool, text func(int64) string) string {
	if endless && n == 0 {
		return "no end"
	}
	return text(n)
}
