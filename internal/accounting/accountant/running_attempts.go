package accountant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
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

// maxRunningCalls bounds the schedds that list their live attempts at one time.
const maxRunningCalls = 16

// liveError is that a schedd does not list its live attempts.
type liveError struct {
	host  string
	cause error
}

func (e *liveError) Error() string {
	return fmt.Sprintf("running attempts of schedd %s: %v", e.host, e.cause)
}
func (e *liveError) Unwrap() error { return e.cause }

// runningAttempts asks all schedds for their live attempts, which their feeds have when
// they have ended. Those of a schedd that does not answer are missing, and err says so.
func (s *scheddSet) runningAttempts(ctx context.Context) (all []accounting.RunningAttempt, err error) {
	records, failed := s.liveAttempts(ctx, &wire.FeedRunning{}, runningTimeout)
	for i := range records {
		r := &records[i]
		all = append(all, accounting.RunningAttempt{Attempt: r.AttemptEntry,
			Submitter: accounting.Submitter{Owner: r.Job.Owner, Group: r.Job.Group}})
	}
	for _, e := range failed {
		err = errors.Join(err, e)
	}
	return all, err
}

// liveAttempts asks all schedds for their live attempts, each for at most a time. Those
// of one host are together.
func (s *scheddSet) liveAttempts(ctx context.Context, ask *wire.FeedRunning, most time.Duration) (
	all []accounting.AttemptRecord, failed []*liveError) {
	s.mu.Lock()
	hosts := slices.Sorted(maps.Keys(s.all))
	addresses := make([]string, len(hosts))
	for i, host := range hosts {
		addresses[i] = s.all[host].address
	}
	s.mu.Unlock()
	lists, errs := make([][]accounting.AttemptRecord, len(hosts)), make([]error, len(hosts))
	slots := make(chan struct{}, maxRunningCalls)
	var calls sync.WaitGroup
	for i := range hosts {
		slots <- struct{}{}
		calls.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(ctx, most)
			defer cancel()
			lists[i], errs[i] = s.liveOf(ctx, addresses[i], ask)
		})
	}
	calls.Wait()
	for i, host := range hosts {
		if all = append(all, lists[i]...); errs[i] != nil {
			failed = append(failed, &liveError{host, errs[i]})
		}
	}
	return all, failed
}

// liveOf asks one schedd. An attempt without a number stands for the tasks of a job that
// wait.
func (s *scheddSet) liveOf(ctx context.Context, address string, ask *wire.FeedRunning) (
	list []accounting.AttemptRecord, err error) {
	conn, err := rpc.Dial(address, s.identity, peer.Schedd)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stream, err := wire.NewFeedClient(conn).Running(ctx, ask)
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
	job := &accounting.JobEntry{}
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
				job = e.Job
			case e.Attempt != nil && e.Attempt.JobKey == job.JobKey:
				list = append(list, accounting.AttemptRecord{AttemptEntry: *e.Attempt, Job: job})
			}
		}
	}
}
