package claim

import (
	"context"
	"time"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/probe"
)

// The stop order of a task of a service:
//
//	leaving is published ──drain──▶ POST to stop_url ──▶ SIGTERM ──notice──▶ SIGKILL
//
// Clients that know its name go elsewhere before it stops to accept connections. A vacate
// that must be fast skips all but SIGKILL, at any time.

// Bounds on how long the stop order may take before SIGTERM.
const (
	maxDrain       = 10 * time.Minute
	maxStopRequest = 10 * time.Second // for the answer to the POST
)

// beginLeaving begins the stop order of an attempt that is to end, and reports whether it
// has. If it has, the end comes by drained.
func (h serviceRunner) beginLeaving(a *Attempt, o VacateCmd) bool {
	s := &a.service
	if s.program == nil || s.watch == nil {
		return false
	}
	if o.Fast || o.Cause == wire.Cause_CAUSE_LEASE || h.ownerSuspension.reason() != "" {
		h.hurryLeaving(a)
		return false
	}
	if s.draining != nil {
		if s.drain == nil { // it got SIGTERM already
			return false
		}
		*s.draining = o
		return true
	}
	s.draining = &o
	s.watch.Leave()
	drain, notice := h.leavingTimes(a, o)
	s.draining.Notice = notice
	if drain <= 0 && s.program.GetStopUrl() == "" {
		return false
	}
	ctx, cancel := context.WithCancel(a.ctx)
	s.drain = cancel
	stop := h.stopRequest(a)
	go func() {
		defer cancel()
		sleepContext(ctx, drain)
		if ctx.Err() == nil && stop != nil {
			if err := stop(ctx); err != nil {
				h.machine.log.Info("stop_url", "attempt", a.Label(), "err", err)
			}
		}
		h.queue.Put(drained{a.id})
	}()
	return true
}

// hurryLeaving ends a drain: the attempt ends at once.
func (h serviceRunner) hurryLeaving(a *Attempt) {
	if s := &a.service; s.drain != nil {
		s.drain()
		s.drain, s.draining = nil, &VacateCmd{}
	}
}

// leavingTimes returns how long the attempt is drained, and the longest notice after
// that; 0: its own. Whoever waits for the room bounds both together.
func (h serviceRunner) leavingTimes(a *Attempt, o VacateCmd) (drain, notice time.Duration) {
	drain = min(max(time.Duration(a.service.program.GetDrainNs()), 0), maxDrain)
	limit := o.Notice
	if o.Cause == wire.Cause_CAUSE_PREEMPTED {
		if bound := h.machine.config.PreemptionDelay; bound > 0 && (limit <= 0 || bound < limit) {
			limit = bound
		}
	}
	if limit <= 0 {
		return drain, 0
	}
	drain = min(drain, limit/2)
	return drain, limit - drain
}

// stopRequest returns the POST to the stop_url of an attempt; nil: there is none.
func (h serviceRunner) stopRequest(a *Attempt) func(context.Context) error {
	path, port := a.service.program.GetStopUrl(), a.service.program.GetStopPort()
	if path == "" {
		return nil
	}
	address, ok := h.portAddresses()[port]
	return func(ctx context.Context) error {
		if !ok {
			return probe.NoPortError(port)
		}
		ctx, cancel := context.WithTimeout(ctx, maxStopRequest)
		defer cancel()
		return probe.Post(ctx, address, checkText(path))
	}
}

// onDrained stops an attempt that has been drained.
func (h serviceRunner) onDrained(n drained) {
	if !h.hasOpenAttempt(n.id) || h.attempt.service.drain == nil || h.starter == nil {
		return
	}
	a := h.attempt
	a.service.drain = nil
	o := *a.service.draining
	if !h.checkpointer().vacateWithCheckpoint(a, o) {
		h.stopAttempt(a, o)
	}
}

// sleepContext waits, or until ctx ends.
func sleepContext(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
