package schedd

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// How often the collector is asked what GPUs there are: seldom, and more often while it
// knows of none.
const (
	gpuInterval     = 10 * time.Second
	gpuIntervalNone = 2 * time.Second
)

// poolGPUs is what GPUs the pool has, as last heard. It is read by many goroutines and
// written by one.
type poolGPUs struct {
	machines atomic.Pointer[[]gpuMachine] // nil: nobody has said yet
}

// gpuMachine is a machine with GPUs.
type gpuMachine struct {
	name   string
	gpus   int
	memory roost.Bytes // of its largest card; 0 unknown
}

// missingGPUs says why no machine can ever have what a request asks for, or returns "".
// Without a machine with GPUs nothing is known of what will come.
func missingGPUs(machines []gpuMachine, r roost.Resources) string {
	if len(machines) == 0 {
		return ""
	}
	var largest, most gpuMachine
	for _, m := range machines {
		if m.gpus >= r.GPUs && (m.memory >= r.GPUMemory || m.memory == 0) {
			return ""
		}
		if m.memory > largest.memory || m.memory == largest.memory && m.gpus > largest.gpus {
			largest = m
		}
		if m.gpus > most.gpus {
			most = m
		}
	}
	switch {
	case r.GPUs > most.gpus && r.GPUMemory <= largest.memory:
		return fmt.Sprintf("no machine of the pool has %d GPUs: the most are %d, on %s; ask for at most %d", r.GPUs,
			most.gpus, most.name, most.gpus)
	case r.GPUMemory > largest.memory && r.GPUs <= most.gpus:
		return fmt.Sprintf("no GPU of the pool has %v of memory: the largest has %v, on %s; ask for at most that",
			r.GPUMemory, largest.memory, largest.name)
	}
	return fmt.Sprintf("no machine of the pool has %d GPUs with %v of memory: the largest GPU has %v, on %s, and "+
		"the most are %d, on %s",
		r.GPUs, r.GPUMemory, largest.memory, largest.name, most.gpus, most.name)
}

// checkFeasible says which of some jobs ask for GPUs that no machine has, or are streams
// that the pool cannot hold. As to GPUs, a submission that is fine never waits for this:
// what is remembered clears it. What is remembered does not condemn it, because a machine
// with larger cards may just have come: for that the collector is asked anew, and if it
// does not answer nothing is known.
func (s *Schedd) checkFeasible(ctx context.Context, specs []queue.SubmitSpec) error {
	if err := s.checkCellCapacity(ctx, specs); err != nil {
		return err
	}
	known := s.poolGPUs.machines.Load()
	if known == nil || gpuRefusal(*known, specs) == nil {
		return nil
	}
	now, err := s.queryGPUs(ctx)
	if err != nil {
		return nil
	}
	return gpuRefusal(now, specs)
}

func gpuRefusal(machines []gpuMachine, specs []queue.SubmitSpec) error {
	for i := range specs {
		for _, n := range specs[i].GPUs() {
			why := missingGPUs(machines, n.Resources)
			if why == "" {
				continue
			}
			err := fmt.Errorf("%w: %s", roost.Invalid, why)
			if specs[i].Count > 1 {
				err = fmt.Errorf("task %d: %w", n.Task, err)
			}
			if len(specs) > 1 {
				err = fmt.Errorf("job %d of the submission: %w", i, err)
			}
			return err
		}
	}
	return nil
}

// runGPUQueries keeps what is known of the GPUs fresh until ctx ends.
func (s *Schedd) runGPUQueries(ctx context.Context) {
	for ctx.Err() == nil && len(s.node.Collectors) > 0 {
		wait := gpuIntervalNone
		if found, err := s.queryGPUs(ctx); err == nil {
			s.poolGPUs.machines.Store(&found)
			if len(found) > 0 {
				wait = gpuInterval
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// queryGPUs asks the collectors in turn until one answers.
func (s *Schedd) queryGPUs(ctx context.Context) (found []gpuMachine, err error) {
	for _, addr := range s.node.Collectors {
		if found, err = s.queryGPUsFrom(ctx, addr); err == nil {
			return found, nil
		}
	}
	return nil, err
}

func (s *Schedd) queryGPUsFrom(ctx context.Context, addr string) ([]gpuMachine, error) {
	found := []gpuMachine{}
	err := s.queryMachines(ctx, addr, roost.AttrTotalGpus+" > 0",
		[]string{roost.AttrName, roost.AttrTotalGpus, roost.AttrGpuMemoryMax}, func(ad *classad.Ad) {
			name, _ := ad.Str(roost.AttrName)
			gpus, _ := ad.Int(roost.AttrTotalGpus)
			memory, _ := ad.Int(roost.AttrGpuMemoryMax)
			found = append(found, gpuMachine{name, int(gpus), roost.Bytes(memory) * roost.MiB})
		})
	return found, err
}

// queryMachines asks one collector for some attributes of machines.
func (s *Schedd) queryMachines(ctx context.Context, addr, constraint string, attributes []string,
	each func(*classad.Ad)) error {
	conn, err := rpc.Dial(addr, s.identity, peer.Collector)
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(ctx, collectorTimeout)
	defer cancel()
	stream, err := wire.NewCollectorClient(conn).Query(ctx,
		&wire.AdQuery{Type: "Machine", Constraint: constraint, Projection: attributes})
	if err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		ad, err := classad.Parse(m.GetAd())
		if err != nil {
			return err
		}
		each(ad)
	}
}
