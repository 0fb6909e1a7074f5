package accountant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/accounting"
	"github.com/roost-batch/roost/internal/accounting/codec"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// runningTimeout bounds how long a schedd may take to list its live attempts.
const runningTimeout = time.Minute

// runningAttempts asks all schedds for their live attempts, which their feeds have when
// they have ended. Those of a schedd that does not answer are missing, and err says so.
func (s *scheddSet) runningAttempts(ctx context.Context) (all []accounting.RunningAttempt, err error) {
	s.mu.Lock()
	hosts := slices.Sorted(maps.Keys(s.all))
	addresses := make([]string, len(hosts))
	for i, host := range hosts {
		addresses[i] = s.all[host].address
	}
	s.mu.Unlock()
	for i, host := range hosts {
		list, lerr := s.runningOf(ctx, addresses[i])
		if lerr != nil {
			err = errors.Join(err, fmt.Errorf("running attempts of schedd %s: %w", host, lerr))
			continue
		}
		all = append(all, list...)
	}
	return all, err
}

// runningOf asks one schedd.
func (s *scheddSet) runningOf(ctx context.Context, address string) (list []accounting.RunningAttempt, err error) {
	ctx, cancel := context.WithTimeout(ctx, runningTimeout)
	defer cancel()
	conn, err := rpc.Dial(address, s.identity, peer.Schedd)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stream, err := wire.NewFeedClient(conn).Running(ctx, &wire.FeedRunning{})
	if err != nil {
		return nil, rpc.FromStatus(err)
	}
	greeting, err := stream.Recv()
	if err != nil {
		return nil, rpc.FromStatus(err)
	}
	if len(greeting.GetSource()) != len(accounting.SourceID{}) {
		return nil, fmt.Errorf("its greeting: %w: it has no source", roost.Invalid)
	}
	origin := codec.Origin{Source: accounting.SourceID(greeting.GetSource()), Host: greeting.GetHost()}
	var job accounting.JobEntry
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return list, nil
		}
		if err != nil {
			return nil, rpc.FromStatus(err)
		}
		for _, data := range m.GetEntries() {
			e, err := codec.DecodeEntry(data, 0, origin)
			if err != nil {
				return nil, err
			}
			switch {
			case e.Job != nil:
				job = *e.Job
			case e.Attempt != nil && e.Attempt.JobKey == job.JobKey:
				list = append(list, accounting.RunningAttempt{Attempt: *e.Attempt,
					Submitter: accounting.Submitter{Owner: job.Owner, Group: job.Group}})
			}
		}
	}
}
