package streams

import (
	"bufio"
	"errors"
	"io"
	"net"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/startd/claim"
	"github.com/roost-batch/roost/startd/ranks"
)

// serveRanks has the schedd of an attempt come, and passes on what it and the attempt's
// ranks tell each other. The ranks connect again when that ends.
func (m *Server) serveRanks(a *claim.Attempt, conn *net.UnixConn) error {
	if err := verifyCaller(a, conn); err != nil {
		return nil // who it is hears nothing
	}
	r := &spawnRequest{attempt: a.ID(), ranks: conn, callerGone: make(chan struct{}), scheddCame: make(chan struct{})}
	ticket := m.spawnRequests.put(r)
	defer m.spawnRequests.drop(ticket)
	m.loop.SendTo(a.ID().Task.Job.Host, &wire.FromStartd{Of: &wire.FromStartd_Reach{
		Reach: &wire.ReachWanted{Attempt: wire.FromAttempt(a.ID()), Ticket: ticket, Ranks: true},
	}})
	select {
	case <-r.scheddCame:
	case <-time.After(spawnTimeout):
		return nil
	case <-a.Ended():
		return nil
	case <-m.loop.Done():
		return nil
	}
	select {
	case <-r.callerGone:
	case <-m.loop.Done():
	}
	return nil
}

// relayRanks passes on messages between the ranks of a task and their schedd, until one
// of the two has gone.
func (r *spawnRequest) relayRanks(stream grpc.BidiStreamingServer[wire.ReachOutput, wire.ReachCall]) error {
	defer close(r.callerGone)
	down := make(chan error, 1)
	go func() {
		for {
			out, err := stream.Recv()
			if err == nil {
				_ = r.ranks.SetWriteDeadline(time.Now().Add(spawnTimeout))
				_, err = r.ranks.Write(ranks.AppendFrame(nil, out.GetRanks()))
			}
			if err != nil {
				_ = r.ranks.Close()
				down <- err
				return
			}
		}
	}()
	in := bufio.NewReader(r.ranks)
	for {
		body, err := ranks.ReadFrame(in)
		if err == nil {
			err = stream.Send(&wire.ReachCall{Ranks: body})
		}
		if err == nil {
			continue
		}
		_ = r.ranks.Close()
		select {
		case err = <-down:
		default:
		}
		if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
			return nil
		}
		return err
	}
}
