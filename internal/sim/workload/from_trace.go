package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/sim/packing"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/schedd/queue"
)

// FromTrace returns a pool of the first nodes of the openb trace, with a job for each
// pod. machines is the number of nodes, 0 for all. A job comes when its pod was created,
// and runs as long as the pod was on a machine, or existed if it never was on one. The
// first one comes at time 0. Users are named after classes of service, since the trace
// has none. An error has the line in the list of pods.
func FromTrace(nodes []packing.TraceNode, pods []packing.TracePod, machines int,
	seed uint64) (c pool.SimulationConfig, err error) {
	if machines == 0 {
		machines = len(nodes)
	}
	if machines < 1 || machines > len(nodes) {
		return c, fmt.Errorf("%w: the list has %d nodes, and %d are wanted", roost.Invalid, len(nodes), machines)
	}
	c = pool.SimulationConfig{Seed: seed, Managers: 1, Schedds: 1}
	for i := range nodes[:machines] {
		n := &nodes[i]
		units, err := n.ResourceUnits()
		if err != nil {
			return c, fmt.Errorf("node %s: %w", n.Name, err)
		}
		ad := classad.New()
		ad.SetString(packing.AttrModel, n.GPUModel)
		c.Machines = append(c.Machines, pool.MachineConfig{
			Name: n.Name, Units: units, Ad: ad,
			Resources: roost.Resources{CPU: n.CPU, Memory: n.Memory, Disk: roost.TiB, GPUs: n.GPUs},
		})
	}
	if len(pods) == 0 {
		return c, fmt.Errorf("%w: there is no pod in the list", roost.Invalid)
	}
	first := slices.MinFunc(pods, func(a, b packing.TracePod) int { return cmp.Compare(a.Created, b.Created) }).Created
	for i := range pods {
		p := &pods[i]
		if p.Duration < 0 {
			return c, fmt.Errorf("line %d: %w: of pod %s is not said when it came and went: creation_time and "+
				"deletion_time are wanted", p.Line, roost.Invalid, p.Name)
		}
		c.Jobs = append(c.Jobs, podJob(p, first))
	}
	slices.SortStableFunc(c.Jobs, func(a, b pool.JobConfig) int { return cmp.Compare(a.At, b.At) })
	return c, nil
}

// podJob returns the job of a pod.
func podJob(p *packing.TracePod, first int64) pool.JobConfig {
	r, require, band := p.Demand()
	r.CPU = max(r.CPU, 1) // a task needs some part of a core
	ad := setDemand(classad.New(), "", band, r)
	ad.SetString(roost.AttrJobName, p.Name)
	if require != "" {
		if err := ad.SetExpr(roost.AttrRequirements, require); err != nil {
			panic(err) // its parts were validated
		}
	}
	return pool.JobConfig{
		At: time.Duration(p.Created-first) * time.Second, Owner: cmp.Or(strings.ToLower(p.QoS), "openb"),
		Spec:     queue.SubmitSpec{Ad: ad, Count: 1},
		Runtimes: []time.Duration{time.Duration(max(p.Duration, 1)) * time.Second},
	}
}
