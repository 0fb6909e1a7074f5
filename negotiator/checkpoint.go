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
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/picture"
	"github.com/roost-batch/roost/negotiator/share"
)

// A checkpoint of the cell is what the leader would make its next plan of, all of one instant. The loop only copies what changes, which is pointers to
// machines that do not, and what each request wants; it is written down outside of it.

// checkpoint is the cell as it is now, and its ledger as it is kept. What schedds have proposed for the next cycle is left to it.
func (c *cell) checkpoint(now time.Time) (*picture.Checkpoint, []byte, error) {
	if !c.synced {
		return nil, nil, fmt.Errorf("cell: %w: the negotiator does not know the machines yet: no collector has answered", roost.Unavailable)
	}
	c.lapse(now)
	c.announce()
	c.noteDrains(now)
	p := &picture.Checkpoint{Roost: roost.Version, Epoch: c.epoch, Holds: map[share.Submitter]roost.Resources{}, Schedds: map[string]bool{}}
	asking := map[*request]bool{}
	for _, r := range c.wants(now) {
		asking[r] = true
		r.propose = r.Proposed
	}
	p.Picture = *c.picture(now)
	p.Asks, p.Ran, p.Policy = nil, nil, nil
	for _, name := range slices.Sorted(maps.Keys(c.schedds)) {
		c.checkpointSchedd(p, c.schedds[name], asking)
	}
	p.Machines, p.Drains, p.Starts = slices.Clone(p.Machines), slices.Clone(p.Drains), slices.Clone(p.Starts)
	p.Evicted, p.Licences = slices.Clone(p.Evicted), maps.Clone(p.Licences)
	p.Users = slices.SortedFunc(p.Charged, share.Submitter.Compare)
	for _, who := range p.Users {
		p.Holds[who] = c.used(who)
	}
	p.Used, p.Charged, p.Known = nil, nil, nil // they look into the cell
	var kept []byte
	c.record.look(func(l *ledger.Ledger) { kept = l.Save() })
	return p, kept, nil
}

// checkpointSchedd adds to a checkpoint what is known of one schedd.
func (c *cell) checkpointSchedd(p *picture.Checkpoint, s *schedd, asking map[*request]bool) {
	p.Schedds[s.name] = s.known()
	if !s.known() {
		delete(p.Schedds, s.name)
	}
	p.Ran = append(p.Ran, s.ran...)
	for _, id := range slices.Sorted(maps.Keys(s.requests)) {
		r := s.requests[id]
		if r.Class == nil {
			continue // it makes no sense, and is not placed
		}
		a := r.Ask
		a.Counts = s.counts(r)
		switch {
		case asking[r]:
			a.Own = r.Wanted
		case c.policy.Stopped(r.Queue) != "":
			a.Own = max(r.wanted-len(r.unseen), 0) // if its queue was started
		}
		p.Asks = append(p.Asks, &a)
		if _, known := p.Holds[r.Submitter]; !known {
			p.Holds[r.Submitter] = c.used(r.Submitter)
		}
	}
}

// pieceBytes is how much of a checkpoint is sent at once.
const pieceBytes = 64 << 10

// CheckpointCell writes down the cell that this negotiator leads. One is written at a time: it may be some hundred megabytes, unpacked.
func (s *service) CheckpointCell(req *wire.CheckpointCellRequest, to grpc.ServerStreamingServer[wire.CheckpointPiece]) error {
	if !s.writing.TryLock() {
		return fmt.Errorf("cell: %w: another checkpoint is being written; ask again in a moment", roost.Unavailable)
	}
	defer s.writing.Unlock()
	var p *picture.Checkpoint
	var kept []byte
	var err error
	if derr := s.loop.do(to.Context(), func(now time.Time) { p, kept, err = s.loop.checkpoint(now) }); derr != nil {
		return derr
	}
	if err != nil {
		return err
	}
	p.Leader = s.name
	if p.Ledger, err = ledger.Load(kept); err != nil {
		return err
	}
	s.log.Info("writing a checkpoint of the cell", "for", req.GetWho(), "machines", len(p.Machines), "requests", len(p.Asks))
	return send(to, func(w io.Writer) error { return picture.Write(w, p) })
}

// checkpoint is that of the cell, where this negotiator leads one.
func (l *loop) checkpoint(now time.Time) (*picture.Checkpoint, []byte, error) {
	if l.cell == nil {
		return nil, nil, l.elsewhere()
	}
	return l.cell.checkpoint(now)
}

// send sends what write writes, in pieces.
func send(to grpc.ServerStreamingServer[wire.CheckpointPiece], write func(io.Writer) error) error {
	w := &pieces{to: to, ctx: to.Context()}
	if err := write(w); err != nil {
		return err
	}
	return w.flush()
}

// pieces is a writer that sends.
type pieces struct {
	to   grpc.ServerStreamingServer[wire.CheckpointPiece]
	ctx  context.Context
	next []byte
}

func (p *pieces) Write(text []byte) (int, error) {
	for rest := text; len(rest) > 0; {
		n := min(len(rest), pieceBytes-len(p.next))
		p.next, rest = append(p.next, rest[:n]...), rest[n:]
		if len(p.next) == pieceBytes {
			if err := p.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(text), p.ctx.Err()
}

func (p *pieces) flush() error {
	if len(p.next) == 0 {
		return nil
	}
	err := p.to.Send(&wire.CheckpointPiece{Data: p.next})
	p.next = nil
	return err
}
