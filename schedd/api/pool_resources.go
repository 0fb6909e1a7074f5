package api

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
	"github.com/roost-batch/roost/schedd/admission"
	"github.com/roost-batch/roost/schedd/queue"
)

// How often the collector is asked what GPUs there are: seldom, and more often while it
// knows of none.
const (
	gpuInterval     = 10 * time.Second
	gpuIntervalNone = 2 * time.Second
)

// checkCellCapacity refuses stream jobs that the pool could not hold if it were empty.
// Streams serve others, so their submitter is told at once and not after a while. If no
// collector answers, nothing is known and nothing is refused.
func (s *Service) checkCellCapacity(ctx context.Context, specs []queue.SubmitSpec) error {
	var machines []admission.MachineCapacity
	for i := range specs {
		each, ok := specs[i].StreamTasks()
		if !ok {
			continue
		}
		if machines == nil {
			var err error
			if machines, err = s.queryCapacity(ctx); err != nil {
				return nil
			}
		}
		if why := admission.CheckCapacity(machines, each, specs[i].Count); why != "" {
			err := fmt.Errorf("%w: %s", roost.Invalid, why)
			if len(specs) > 1 {
				err = fmt.Errorf("job %d of the submission: %w", i, err)
			}
			return err
		}
	}
	return nil
}

// queryCapacity asks the collectors in turn until one answers.
func (s *Service) queryCapacity(ctx context.Context) (found []admission.MachineCapacity, err error) {
	attributes := []string{roost.AttrTotalCpus, roost.AttrTotalMemory, roost.AttrTotalDisk, roost.AttrTotalGpus,
		roost.AttrGpuMemoryMax}
	err = roost.Unavailable
	for _, addr := range s.node.Collectors {
		found = []admission.MachineCapacity{}
		if err = s.queryMachines(ctx, addr, "", attributes, func(ad *classad.Ad) {
			found = append(found, admission.ReadCapacity(ad))
		}); err == nil {
			break
		}
	}
	return found, err
}

// poolGPUs is what GPUs the pool has, as last heard. It is read by many goroutines and
// written by one.
type poolGPUs struct {
	machines atomic.Pointer[[]admission.GPUMachine] // nil: nobody has said yet
}

// checkFeasible refuses jobs that ask for GPUs that no machine has, or streams beyond the
// pool's capacity. As to GPUs, a feasible submission never waits: the remembered machines
// suffice to admit it. They do not suffice to refuse one, because a machine with larger
// cards may just have arrived. Before a refusal the collector is asked anew. If it does
// not answer, nothing is refused.
func (s *Service) checkFeasible(ctx context.Context, specs []queue.SubmitSpec) error {
	if err := s.checkCellCapacity(ctx, specs); err != nil {
		return err
	}
	known := s.poolGPUs.machines.Load()
	if known == nil || admission.GPURefusal(*known, specs) == nil {
		return nil
	}
	now, err := s.queryGPUs(ctx)
	if err != nil {
		return nil
	}
	return admission.GPURefusal(now, specs)
}

// RunGPUQueries keeps what is known of the GPUs fresh until ctx ends.
func (s *Service) RunGPUQueries(ctx context.Context) {
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
func (s *Service) queryGPUs(ctx context.Context) (found []admission.GPUMachine, err error) {
	for _, addr := range s.node.Collectors {
		if found, err = s.queryGPUsFrom(ctx, addr); err == nil {
			return found, nil
		}
	}
	return nil, err
}

func (s *Service) queryGPUsFrom(ctx context.Context, addr string) ([]admission.GPUMachine, error) {
	found := []admission.GPUMachine{}
	err := s.queryMachines(ctx, addr, roost.AttrTotalGpus+" > 0",
		[]string{roost.AttrName, roost.AttrTotalGpus, roost.AttrGpuMemoryMax}, func(ad *classad.Ad) {
			name, _ := ad.Str(roost.AttrName)
			gpus, _ := ad.Int(roost.AttrTotalGpus)
			memory, _ := ad.Int(roost.AttrGpuMemoryMax)
			found = append(found, admission.GPUMachine{Name: name, GPUs: int(gpus),
				Memory: roost.Bytes(memory) * roost.MiB})
		})
	return found, err
}

// queryMachines asks one collector for some attributes of machines.
func (s *Service) queryMachines(ctx context.Context, addr, constraint string, attributes []string,
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
