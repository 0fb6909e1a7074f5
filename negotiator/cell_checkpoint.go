package negotiator

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// A cell checkpoint contains everything that the leader's next plan would be made of, at
// one instant. The loop only copies what changes: pointers to immutable machines, and
// what each request wants. It is written outside of the loop.

// cellCheckpoint returns the present cell and its saved ledger. It leaves the schedds'
// self-placements to the next cycle.
func (c *leaderState) cellCheckpoint(now time.Time) (*cellstate.CellCheckpoint, []byte, error) {
	if !c.synced {
		return nil, nil, fmt.Errorf("cell: %w: the negotiator does not know the machines yet: no collector has "+
			"answered", roost.Unavailable)
	}
	c.grants().expireOverdue(now)
	c.broadcastPolicy()
	c.blackHoleDrains().readDrains(now)
	p := &cellstate.CellCheckpoint{RoostVersion: roost.Version, Epoch: c.epoch,
		ClaimHolders: map[fairshare.Submitter]roost.Resources{}, Schedds: map[string]bool{}}
	asking := map[*scheddRequest]bool{}
	for _, r := range c.pendingRequests(now) {
		asking[r] = true
		r.selfPlacements = r.SelfPlacements
	}
	p.CellState = *c.cellState(now)
	p.Requests, p.LastRunning, p.Policy = nil, nil, nil
	for _, name := range slices.Sorted(maps.Keys(c.schedds)) {
		c.addScheddToCheckpoint(p, c.schedds[name], asking)
	}
	p.Machines, p.Drains, p.RecentStarts = slices.Clone(p.Machines), slices.Clone(p.Drains),
		slices.Clone(p.RecentStarts)
	p.Evicted, p.LimitsUsed = slices.Clone(p.Evicted), maps.Clone(p.LimitsUsed)
	p.ChargedSubmitters = slices.SortedFunc(p.ChargedCores, fairshare.Submitter.Compare)
	for _, who := range p.ChargedSubmitters {
		p.ClaimHolders[who] = c.claimedBySubmitter(who)
	}
	p.UsageByClaims, p.ChargedCores, p.KnownSchedds = nil, nil, nil // they refer to the cell
	var stored []byte
	c.ledgerStore.view(func(l *ledger.Ledger) { stored = l.Save() })
	return p, stored, nil
}

// addScheddToCheckpoint adds one schedd to a checkpoint.
func (c *leaderState) addScheddToCheckpoint(p *cellstate.CellCheckpoint, s *scheddState,
	asking map[*scheddRequest]bool) {
	p.Schedds[s.name] = s.knowsRunning()
	if !s.knowsRunning() {
		delete(p.Schedds, s.name)
	}
	p.LastRunning = append(p.LastRunning, s.lastRunning...)
	for _, id := range slices.Sorted(maps.Keys(s.requests)) {
		r := s.requests[id]
		if r.Class == nil {
			continue // invalid, so it is not placed
		}
		a := r.PendingRequest
		a.RunningCount = s.limitCounting(r)
		switch {
		case asking[r]:
			a.OwnWanted = r.Wanted
		case c.policy.StopReason(r.Queue) != "":
			a.OwnWanted = max(r.wanted-len(r.unseenGrants), 0) // as if its queue was started
		}
		p.Requests = append(p.Requests, &a)
		if _, known := p.ClaimHolders[r.Submitter]; !known {
			p.ClaimHolders[r.Submitter] = c.claimedBySubmitter(r.Submitter)
		}
	}
}

// chunkBytes is how much of a checkpoint is sent at once.
const chunkBytes = 64 << 10

// CheckpointCell writes a checkpoint of the cell that this negotiator leads. Only one is
// written at a time: it may have some hundred megabytes, uncompressed.
func (s *grpcService) CheckpointCell(req *wire.CheckpointCellRequest,
	to grpc.ServerStreamingServer[wire.CheckpointPiece]) error {
	if !s.checkpointMu.TryLock() {
		return fmt.Errorf("cell: %w: another checkpoint is being written; ask again in a moment", roost.Unavailable)
	}
	defer s.checkpointMu.Unlock()
	var p *cellstate.CellCheckpoint
	var stored []byte
	var err error
	if derr := s.loop.runInLoop(to.Context(), func(now time.Time) {
		p, stored, err = s.loop.checkpointCell(now)
	}); derr != nil {
		return derr
	}
	if err != nil {
		return err
	}
	p.Leader = s.name
	if p.Ledger, err = ledger.Load(stored); err != nil {
		return err
	}
	s.log.Info("writing a checkpoint of the cell", "for", req.GetWho(), "machines", len(p.Machines), "requests",
		len(p.Requests))
	return sendChunks(to, func(w io.Writer) error { return cellstate.Write(w, p) })
}

// checkpointCell returns a checkpoint of the cell, if this negotiator leads.
func (l *decisionLoop) checkpointCell(now time.Time) (*cellstate.CellCheckpoint, []byte, error) {
	if l.cell == nil {
		return nil, nil, l.notLeaderError()
	}
	return l.cell.cellCheckpoint(now)
}

// sendChunks sends the output of write, in pieces.
func sendChunks(to grpc.ServerStreamingServer[wire.CheckpointPiece], write func(io.Writer) error) error {
	w := &chunkWriter{stream: to, ctx: to.Context()}
	if err := write(w); err != nil {
		return err
	}
	return w.flush()
}

// chunkWriter is a writer that sends its data on a stream.
type chunkWriter struct {
	stream grpc.ServerStreamingServer[wire.CheckpointPiece]
	ctx    context.Context
	buffer []byte
}

func (p *chunkWriter) Write(text []byte) (int, error) {
	for rest := text; len(rest) > 0; {
		n := min(len(rest), chunkBytes-len(p.buffer))
		p.buffer, rest = append(p.buffer, rest[:n]...), rest[n:]
		if len(p.buffer) == chunkBytes {
			if err := p.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(text), p.ctx.Err()
}

func (p *chunkWriter) flush() error {
	if len(p.buffer) == 0 {
		return nil
	}
	err := p.stream.Send(&wire.CheckpointPiece{Data: p.buffer})
	p.buffer = nil
	return err
}
