package schedd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/codec"
	"github.com/roost-batch/roost/schedd/queue"
)

// Bounds on what jobs run on their own machines.
const (
	maxSpawnCalls  = 2048             // calls at a time, of all jobs
	maxSpawnPlaces = 1024             // places of a call
	maxSpawnInput  = 256 << 10        // bytes of input that travel at once
	spawnTimeout   = 20 * time.Second // for the processes of a chunk to be there
	spawnRetry     = 100 * time.Millisecond
)

// spawnCall is a call of a job under way. The machines of its gang are all that it can
// name.
type spawnCall struct {
	*Schedd
	attempt roost.AttemptID
	lines   []queue.HostProcesses // of the file of nodes
	peers   map[string]*nodeConn
	output  chan *wire.ReachOutput
	places  []*spawnPlace // of an interactive call
}

// spawnPlace takes the standard input of a command in one place.
type spawnPlace struct {
	input chan *wire.ShellInput
	ended chan struct{}
}

// onSpawnRequest takes in that a process of an attempt wants something run on the
// machines of its job.
func (s *Schedd) onSpawnRequest(p *nodeConn, m *wire.ReachWanted) {
	a := codec.AttemptID(s.node.Name, m.GetAttempt())
	if s.queue.NodeOf(a) != p.Name {
		return // it is over, or never was there
	}
	if m.GetRanks() {
		attachRanks(s, p, a, m.GetTicket())
		return
	}
	if s.spawnCalls.Add(1) > maxSpawnCalls {
		s.spawnCalls.Add(-1)
		s.log.Warn("too many calls of jobs at once", "attempt", a)
		return
	}
	r := &spawnCall{Schedd: s, attempt: a, peers: map[string]*nodeConn{}, output: make(chan *wire.ReachOutput)}
	for _, h := range s.queue.HostsOfAttempt(a) {
		for range h.Processes {
			r.lines = append(r.lines, h)
		}
		r.peers[h.Node] = s.peers[h.Node]
	}
	go func() {
		defer s.spawnCalls.Add(-1)
		if err := r.serveCall(s.daemonContext, p, m.GetTicket()); err != nil {
			s.log.Info("a call of a job has failed", "attempt", a, "error", rpc.FromStatus(err))
		}
	}()
}

// serveCall hears what is wanted, has it done, and says what comes of it.
func (r *spawnCall) serveCall(ctx context.Context, p *nodeConn, ticket uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := p.Client.Reach(ctx)
	if err != nil {
		return err
	}
	if err := stream.Send(&wire.ReachOutput{Attempt: codec.AttemptRef(r.attempt), Ticket: ticket}); err != nil &&
		!errors.Is(err, io.EOF) {
		return err
	}
	call, err := stream.Recv()
	if err != nil {
		return err
	}
	over := make(chan struct{})
	if call.GetInteractive() && len(call.GetLines()) <= maxSpawnPlaces {
		for range call.GetLines() {
			r.places = append(r.places, &spawnPlace{make(chan *wire.ShellInput), make(chan struct{})})
		}
	}
	go func() {
		r.readInput(ctx, stream)
		cancel()
		close(over)
	}()
	go r.spawnAll(ctx, call)
	for out := range r.output {
		if err := stream.Send(out); err != nil {
			cancel()
			for range r.output {
			}
			return err
		}
	}
	err = stream.CloseSend()
	<-over // when the node has passed all of it on
	return err
}

// readInput passes the input of an interactive call on to its places, until the caller
// has gone. A place whose command has ended loses it.
func (r *spawnCall) readInput(ctx context.Context,
	stream grpc.BidiStreamingClient[wire.ReachOutput, wire.ReachCall]) {
	for {
		in, err := stream.Recv()
		if err != nil {
			return
		}
		if int(in.GetPlace()) >= len(r.places) || len(in.GetData()) > maxSpawnInput {
			continue
		}
		p := r.places[in.GetPlace()]
		select {
		case p.input <- &wire.ShellInput{Data: in.GetData(), Eof: in.GetEof()}:
		case <-p.ended:
		case <-ctx.Done():
			return
		}
	}
}

// spawnAll runs the command in each place that is named, and closes output when all have
// ended.
func (r *spawnCall) spawnAll(ctx context.Context, call *wire.ReachCall) {
	defer close(r.output)
	if err := r.checkCommand(call); err != nil {
		r.sendOutput(ctx, &wire.ReachOutput{Error: err.Error()})
		return
	}
	var places sync.WaitGroup
	for i, line := range call.GetLines() {
		if call.GetSequential() {
			r.spawnOne(ctx, call, i, int(line))
			continue
		}
		places.Go(func() { r.spawnOne(ctx, call, i, int(line)) })
	}
	places.Wait()
}

func (r *spawnCall) checkCommand(call *wire.ReachCall) error {
	if n := len(call.GetLines()); n > maxSpawnPlaces {
		return fmt.Errorf("%w: %d places at once, and %d is the most", roost.Exhausted, n, maxSpawnPlaces)
	}
	for i, line := range call.GetLines() {
		if int(line) >= len(r.lines) {
			return fmt.Errorf("%w: the job has places 0 to %d, and %d is none of them", roost.Invalid,
				len(r.lines)-1, line)
		}
		if i < len(call.GetNodes()) && call.GetNodes()[i] != r.lines[line].Node {
			return fmt.Errorf("%w: place %d is on %s now, as the job has given machines back: read its file of "+
				"nodes again",
				roost.Conflict, line, r.lines[line].Node)
		}
	}
	if len(call.GetCommand()) == 0 {
		return fmt.Errorf("%w: there is no command", roost.Invalid)
	}
	return nil
}

func (r *spawnCall) sendOutput(ctx context.Context, out *wire.ReachOutput) bool {
	select {
	case r.output <- out:
		return true
	case <-ctx.Done():
		return false
	}
}

// spawnOne runs the command in one place. A chunk whose processes are not there yet is
// waited for: all start together, but not at one instant.
func (r *spawnCall) spawnOne(ctx context.Context, call *wire.ReachCall, place, line int) {
	if place < len(r.places) {
		defer close(r.places[place].ended)
	}
	for began := time.Now(); ; {
		end, err := r.runShell(ctx, call, place, line)
		if err == nil {
			end.Place, end.Ended = uint32(place), true
			r.sendOutput(ctx, end)
			return
		}
		err = rpc.FromStatus(err)
		early := errors.Is(err, roost.Conflict) || errors.Is(err, roost.NotFound)
		if !early || time.Since(began) > spawnTimeout {
			r.sendOutput(ctx, &wire.ReachOutput{Place: uint32(place), Ended: true, Code: spawnFailedStatus,
				Error: err.Error()})
			return
		}
		select {
		case <-time.After(spawnRetry):
		case <-ctx.Done():
			return
		}
	}
}

// spawnFailedStatus is the exit code of a command that could not be run.
const spawnFailedStatus = 255

// runShell runs the command in a chunk, as its user, and passes on what it writes.
func (r *spawnCall) runShell(ctx context.Context, call *wire.ReachCall, place, line int) (*wire.ReachOutput, error) {
	h := r.lines[line]
	p := r.peers[h.Node]
	if p == nil {
		return nil, fmt.Errorf("node %s: %w: it does not answer now", h.Node, roost.Unavailable)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	down, err := p.Client.Shell(ctx)
	if err != nil {
		return nil, err
	}
	command := append([]string{"/usr/bin/env", "PBS_TASKNUM=" + strconv.Itoa(place+2),
		"PBS_VNODENUM=" + strconv.Itoa(line)}, call.GetCommand()...)
	messages := []*wire.ShellInput{{Schedd: r.node.Name, Attempt: codec.AttemptRef(h.Attempt), Command: command,
		OfJob: true}, {Eof: true}}
	if place < len(r.places) {
		messages = messages[:1]
	}
	for _, m := range messages {
		if err := down.Send(m); err != nil && !errors.Is(err, io.EOF) { // the cause of EOF comes with Recv
			return nil, err
		}
	}
	if place < len(r.places) {
		go r.places[place].sendInput(ctx, down)
	}
	for {
		out, err := down.Recv()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("node %s: %w: its conversation has ended", h.Node, roost.Unavailable)
			}
			return nil, err
		}
		if out.GetEnded() {
			return &wire.ReachOutput{Code: out.GetCode(), Signal: out.GetSignal()}, nil
		}
		if !r.sendOutput(ctx, &wire.ReachOutput{Place: uint32(place), Data: out.GetData(), Stderr: out.GetStderr()}) {
			return nil, ctx.Err()
		}
	}
}

// sendInput passes on what comes for the command, until it has ended.
func (p *spawnPlace) sendInput(ctx context.Context, down grpc.BidiStreamingClient[wire.ShellInput,
	wire.ShellOutput]) {
	for {
		select {
		case in := <-p.input:
			if down.Send(in) != nil {
				return
			}
		case <-ctx.Done():
			return
		}
	}
}
