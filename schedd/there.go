package schedd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// silence is that a neighbour does not answer, and why. It is not the answer to what was asked.
type silence struct{ why error }

func (e *silence) Error() string { return e.why.Error() }
func (e *silence) Unwrap() error { return roost.Unavailable }

func isSilence(err error) bool {
	var s *silence
	return errors.As(err, &s)
}

// visit asks a neighbour something.
func (s *Schedd) visit(ctx context.Context, name string, f func(context.Context, wire.NeighbourClient) error) error {
	conn, err := s.neighbours.reach(ctx, name)
	if err != nil {
		if errors.Is(err, roost.NotFound) {
			return err
		}
		return &silence{err}
	}
	err = f(ctx, wire.NewNeighbourClient(conn))
	if err == nil || errors.Is(err, io.EOF) {
		s.neighbours.answered(name, conn)
		return nil
	}
	err = rpc.FromStatus(err)
	switch {
	case ctx.Err() != nil && context.Cause(ctx) != errSilent:
		return ctx.Err()
	case context.Cause(ctx) == errSilent:
		s.neighbours.mute(name, conn)
		return &silence{fmt.Errorf("%w within %v", errSilent, neighbourPatience)}
	case errors.Is(err, roost.Unavailable):
		s.neighbours.mute(name, conn)
		return &silence{fmt.Errorf("%w: %s", errSilent, shortly(err))}
	}
	s.neighbours.answered(name, conn)
	return err
}

// shortly takes the layers of gRPC off the reason that a connection failed.
func shortly(err error) string {
	text := err.Error()
	for _, layer := range []string{"connection error: ", "desc = ", "connect: "} {
		if i := strings.LastIndex(text, layer); i >= 0 {
			text = text[i+len(layer):]
		}
	}
	return strings.Trim(text, `"`)
}

// listThere passes on the rows of a neighbour: only those of its own jobs, for it speaks for no others.
func (s *Schedd) listThere(ctx context.Context, name string, q *wire.NeighbourQuery, to func(*wire.JobStatus) error) error {
	return s.visit(ctx, name, func(ctx context.Context, client wire.NeighbourClient) error {
		stream, err := client.Query(ctx, q)
		return passOn(stream, err, func(row *wire.JobStatus) error {
			if host, _ := s.elsewhere(row.GetId()); host != name && row.GetRefused() == nil {
				return nil
			}
			return to(row)
		})
	})
}

// passOn hands over what a stream brings.
func passOn[T any](from grpc.ServerStreamingClient[T], err error, to func(*T) error) error {
	for err == nil {
		var m *T
		if m, err = from.Recv(); err == nil {
			err = to(m)
		}
	}
	return err
}

// brief asks a single neighbour, which has to say something within its patience; alive is to be called when it does.
func (s *Schedd) brief(ctx context.Context, name string, f func(ctx context.Context, client wire.NeighbourClient, alive func()) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(neighbourPatience, func() { cancel(errSilent) })
	defer late.Stop()
	err := s.visit(ctx, name, func(ctx context.Context, client wire.NeighbourClient) error {
		return f(ctx, client, func() { late.Reset(neighbourPatience) })
	})
	if isSilence(err) {
		return fmt.Errorf("%s %w", name, err)
	}
	return err
}

func (s *Schedd) whyThere(ctx context.Context, host string, req *wire.WhyRequest) (reply *wire.WhyReply, err error) {
	err = s.brief(ctx, host, func(ctx context.Context, client wire.NeighbourClient, _ func()) (err error) {
		reply, err = client.Why(ctx, req)
		return err
	})
	return reply, err
}

func (s *Schedd) eventsThere(ctx context.Context, host string, req *wire.EventsRequest, to func(*wire.JobEvent) error) error {
	return s.brief(ctx, host, func(ctx context.Context, client wire.NeighbourClient, alive func()) error {
		stream, err := client.Events(ctx, req)
		return passOn(stream, err, func(e *wire.JobEvent) error {
			alive()
			return to(e)
		})
	})
}
