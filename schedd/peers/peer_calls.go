package peers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
	"github.com/roost-batch/roost/schedd/queue"
)

// unreachableError is that a neighbour does not answer, and why. It is not the answer to
// what was asked.
type unreachableError struct{ cause error }

func (e *unreachableError) Error() string { return e.cause.Error() }
func (e *unreachableError) Unwrap() error { return roost.Unavailable }

func isUnreachable(err error) bool {
	var s *unreachableError
	return errors.As(err, &s)
}

// callPeer asks a neighbour something.
func (n *Peers) callPeer(ctx context.Context, name string,
	f func(context.Context, wire.NeighbourClient) error) error {
	conn, err := n.connTo(ctx, name)
	if err != nil {
		if errors.Is(err, roost.NotFound) {
			return err
		}
		return &unreachableError{err}
	}
	err = f(ctx, wire.NewNeighbourClient(conn))
	if err == nil || errors.Is(err, io.EOF) {
		n.markReachable(name, conn)
		return nil
	}
	err = rpc.FromStatus(err)
	switch {
	case ctx.Err() != nil && context.Cause(ctx) != errPeerSilent:
		return ctx.Err()
	case context.Cause(ctx) == errPeerSilent:
		n.markUnreachable(name, conn)
		return &unreachableError{fmt.Errorf("%w within %v", errPeerSilent, peerTimeout)}
	case errors.Is(err, roost.Unavailable):
		n.markUnreachable(name, conn)
		return &unreachableError{fmt.Errorf("%w: %s", errPeerSilent, trimGRPCPrefix(err))}
	case errors.Is(err, context.Canceled): // another call has noticed that it is gone, or it stops
		n.markUnreachable(name, conn)
		return &unreachableError{fmt.Errorf("%w: the connection was closed", errPeerSilent)}
	}
	n.markReachable(name, conn)
	return err
}

// trimGRPCPrefix takes the layers of gRPC off the reason that a connection failed.
func trimGRPCPrefix(err error) string {
	text := err.Error()
	for _, layer := range []string{"connection error: ", "desc = ", "connect: "} {
		if i := strings.LastIndex(text, layer); i >= 0 {
			text = text[i+len(layer):]
		}
	}
	return strings.Trim(text, `"`)
}

// queryPeer passes on the rows of a neighbour: only those of its own jobs, for it speaks
// for no others.
func (n *Peers) queryPeer(ctx context.Context, name string, q *wire.NeighbourQuery,
	to func(*wire.JobStatus) error) error {
	return n.callPeer(ctx, name, func(ctx context.Context, client wire.NeighbourClient) error {
		stream, err := client.Query(ctx, q)
		return forwardStream(stream, err, func(row *wire.JobStatus) error {
			if host, _ := n.RemoteHost(row.GetId()); host != name && row.GetRefused() == nil {
				return nil
			}
			return to(row)
		})
	})
}

// forwardStream hands over what a stream brings.
func forwardStream[T any](from grpc.ServerStreamingClient[T], err error, to func(*T) error) error {
	for err == nil {
		var m *T
		if m, err = from.Recv(); err == nil {
			err = to(m)
		}
	}
	return err
}

// failoverPause is for how long the queue of the cell is left alone when nobody leads it.
const failoverPause = 50 * time.Millisecond

// actPatience bounds for how long an act waits for a leader of the queue of the cell. It
// may be done again (ActRequest.Again), so it need not fail in a failover.
const actPatience = 10 * time.Second

// callPeerWithin calls a single neighbour, which has to send something within
// peerTimeout. f calls alive whenever the neighbour does. It is called again if nobody
// leads the queue of the cell, and nothing has come.
func (n *Peers) callPeerWithin(ctx context.Context, name string,
	f func(ctx context.Context, client wire.NeighbourClient, alive func()) error) error {
	return n.callPatiently(ctx, name, peerTimeout, f)
}

// callPatiently is callPeerWithin with the patience for the queue of the cell. Whoever
// leads it has peerTimeout for each attempt, as a neighbour has.
func (n *Peers) callPatiently(ctx context.Context, name string, patience time.Duration,
	f func(ctx context.Context, client wire.NeighbourClient, alive func()) error) error {
	begun, end := false, time.Now().Add(patience)
	attempt := func() error {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		late := time.AfterFunc(min(peerTimeout, time.Until(end)), func() { cancel(errPeerSilent) })
		defer late.Stop()
		return n.callPeer(ctx, name, func(ctx context.Context, client wire.NeighbourClient) error {
			return f(ctx, client, func() {
				begun = true
				late.Reset(peerTimeout)
			})
		})
	}
	for {
		err := attempt()
		if !isUnreachable(err) {
			return err
		}
		if name != n.CellQueue || begun || time.Until(end) < failoverPause || !pauseFor(ctx, failoverPause) {
			return fmt.Errorf("%s %w", name, err)
		}
	}
}

// pauseFor waits, and reports whether ctx has not ended.
func pauseFor(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// WhyPeer asks a peer why its job waits.
func (n *Peers) WhyPeer(ctx context.Context, host string, req *wire.WhyRequest) (reply *wire.WhyReply, err error) {
	err = n.callPeerWithin(ctx, host, func(ctx context.Context, client wire.NeighbourClient, _ func()) (err error) {
		reply, err = client.Why(ctx, req)
		return err
	})
	return reply, err
}

// JobsOfPeer returns the jobs that words of a user name at a peer. It is no error if
// there is none.
func (n *Peers) JobsOfPeer(ctx context.Context, host string, who queue.CallerIdentity,
	query *wire.QueryRequest) (rows []*wire.JobStatus, err error) {
	err = n.QueryPeerWithin(ctx, host, &wire.NeighbourQuery{User: who.User, Uid: who.UID, Query: query},
		func(row *wire.JobStatus) error {
			if row.GetRefused() == nil {
				rows = append(rows, row)
			}
			return nil
		})
	if errors.Is(err, roost.NotFound) {
		return nil, nil
	}
	return rows, err
}

// QueryPeerWithin passes on the rows of a single peer that has to send something within
// peerTimeout.
func (n *Peers) QueryPeerWithin(ctx context.Context, host string, q *wire.NeighbourQuery,
	to func(*wire.JobStatus) error) error {
	return n.callPeerWithin(ctx, host, func(ctx context.Context, client wire.NeighbourClient, alive func()) error {
		stream, err := client.Query(ctx, q)
		return forwardStream(stream, err, func(row *wire.JobStatus) error {
			alive()
			if of, _ := n.RemoteHost(row.GetId()); of != host && row.GetRefused() == nil {
				return nil
			}
			return to(row)
		})
	})
}

// PeerEvents passes on the events of a job of a peer.
func (n *Peers) PeerEvents(ctx context.Context, host string, req *wire.EventsRequest,
	to func(*wire.JobEvent) error) error {
	return n.callPeerWithin(ctx, host, func(ctx context.Context, client wire.NeighbourClient, alive func()) error {
		stream, err := client.Events(ctx, req)
		return forwardStream(stream, err, func(e *wire.JobEvent) error {
			alive()
			return to(e)
		})
	})
}

// PeerLogs passes on the output of a task of a peer's job.
func (n *Peers) PeerLogs(ctx context.Context, host string, req *wire.NeighbourLogs,
	to func(*wire.LogChunk) error) error {
	return n.callPeer(ctx, host, func(ctx context.Context, client wire.NeighbourClient) error {
		stream, err := client.Logs(ctx, req)
		return forwardStream(stream, err, to)
	})
}

// SubmitTo passes a submission on to the queue of the cell. One that has a key is passed
// on again while nobody leads the queue, for as long as a member takes to be elected.
func (n *Peers) SubmitTo(ctx context.Context, name string, req *wire.NeighbourSubmit) (reply *wire.SubmitReply,
	err error) {
	hasKey, began := req.GetRequest().GetKey() != "", time.Now()
	for {
		err = n.callPeer(ctx, name, func(ctx context.Context, client wire.NeighbourClient) (err error) {
			reply, err = client.Submit(ctx, req)
			return rpc.FromStatus(err)
		})
		if !isUnreachable(err) || !hasKey || time.Since(began) > peerTimeout || !pauseFor(ctx, failoverPause) {
			return reply, err
		}
	}
}

// ActOnPeer has another schedd act on its jobs. Its refusals are told in the place of
// each job.
func (n *Peers) ActOnPeer(ctx context.Context, host string, req *wire.ActRequest,
	who queue.CallerIdentity) (reply *wire.ActReply) {
	act := proto.CloneOf(req)
	err := n.callPatiently(ctx, host, actPatience,
		func(ctx context.Context, client wire.NeighbourClient, alive func()) (err error) {
			reply, err = client.Act(ctx, &wire.NeighbourAct{User: who.User, Act: act, Uid: who.UID, Gid: who.GID})
			act.Again = true // it may have been done
			return rpc.FromStatus(err)
		})
	if err == nil {
		return reply
	}
	reply = &wire.ActReply{}
	for _, word := range req.GetSelection().GetSelectors() {
		reply.Results = append(reply.Results,
			&wire.ActReply_Result{Id: word, Error: err.Error(), Kind: uint32(rpc.KindOf(err))})
	}
	return reply
}

// SplitAct cuts an act into one for each row of jobs of one schedd. The name of this
// schedd is empty, and has the jobs of hosts that are not passed on to. A word for which
// isAlone is true has a part for itself.
func (n *Peers) SplitAct(req *wire.ActRequest, passTo, isAlone func(word string) bool) (nodes []string,
	parts []*wire.ActRequest) {
	wasAlone := false
	for _, word := range req.GetSelection().GetSelectors() {
		host, there := n.RemoteHost(word)
		if !there || !n.HasPeer(host) || !passTo(host) {
			host = ""
		}
		alone := isAlone(word)
		if len(nodes) == 0 || nodes[len(nodes)-1] != host || alone || wasAlone {
			part := proto.CloneOf(req)
			part.Selection.Selectors = nil
			nodes, parts = append(nodes, host), append(parts, part)
		}
		last := parts[len(parts)-1].Selection
		last.Selectors = append(last.Selectors, word)
		wasAlone = alone
	}
	if len(nodes) == 0 {
		return []string{""}, []*wire.ActRequest{req}
	}
	return nodes, parts
}
