package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/sim/pack"
	"github.com/roost-batch/roost/internal/sim/pool"
	"github.com/roost-batch/roost/schedd/queue"
)

// FromTrace makes of the openb trace a pool of its first so many nodes, 0 for all, and a job of each pod: it comes when the pod was created, and runs for as long as that
// was on a machine, or was there if it never was on one. The first to come comes at the instant 0. Jobs belong to users named after their classes of service, as the trace
// knows no others. An error names the line of the list of pods.
func FromTrace(nodes []pack.Node, pods []pack.Pod, machines int, seed uint64) (c pool.Config, err error) {
	if machines == 0 {
		machines = len(nodes)
	}
	if machines < 1 || machines > len(nodes) {
		return c, fmt.Errorf("%w: the list has %d nodes, and %d are wanted", roost.Invalid, len(nodes), machines)
	}
	c = pool.Config{Seed: seed, Managers: 1, Schedds: 1}
	for i := range nodes[:machines] {
		n := &nodes[i]
		units, err := n.Units()
		if err != nil {
			return c, fmt.Errorf("node %s: %w", n.Name, err)
		}
		ad := classad.New()
		ad.SetString(pack.AttrModel, n.Model)
		c.Machines = append(c.Machines, pool.Machine{
			Name: n.Name, Units: units, Ad: ad, Resources: roost.Resources{CPU: n.CPU, Memory: n.Memory, Disk: roost.TiB, GPUs: n.GPUs},
		})
	}
	if len(pods) == 0 {
		return c, fmt.Errorf("%w: there is no pod in the list", roost.Invalid)
	}
	first := slices.MinFunc(pods, func(a, b pack.Pod) int { return cmp.Compare(a.Created, b.Created) }).Created
	for i := range pods {
		p := &pods[i]
		if p.Ran < 0 {
			return c, fmt.Errorf("line %d: %w: of pod %s is not said when it came and went: creation_time and deletion_time are wanted", p.Line, roost.Invalid, p.Name)
		}
		c.Jobs = append(c.Jobs, ofPod(p, first))
	}
	slices.SortStableFunc(c.Jobs, func(a, b pool.Job) int { return cmp.Compare(a.At, b.At) })
	return c, nil
}

// ofPod is the job that is made of a pod.
func ofPod(p *pack.Pod, first int64) pool.Job {
	r, require, band := p.Asks()
	r.CPU = max(r.CPU, 1) // a task needs some part of a core
	ad := asked(classad.New(), "", band, r)
	ad.SetString(roost.AttrJobName, p.Name)
	if require != "" {
		if err := ad.SetExpr(roost.AttrRequirements, require); err != nil {
			panic(err) // it is made of words
		}
	}
	return pool.Job{
		At: time.Duration(p.Created-first) * time.Second, Owner: cmp.Or(strings.ToLower(p.QoS), "openb"), Spec: queue.Spec{Ad: ad, Count: 1},
		Run: []time.Duration{time.Duration(max(p.Ran, 1)) * time.Second},
	}
}
