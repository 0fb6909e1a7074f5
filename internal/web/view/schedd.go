package view

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/roost-batch/roost/internal/document"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/web/route"
	"github.com/roost-batch/roost/internal/wire"
)

// Unreachable is a schedd whose jobs are missing.
type Unreachable struct {
	Node   string `json:"node"`
	Reason string `json:"why"`
}

// ask calls f with a client that has the login of the call's user.
func ask(c *route.Call, f func(ctx context.Context, s wire.ScheddClient) error) error {
	s, err := c.Session.Schedd()
	if err != nil {
		return err
	}
	return rpc.FromStatus(f(c.Context(), s))
}

// drain calls f with each message of a stream.
func drain[T any](stream grpc.ServerStreamingClient[T], err error, f func(*T) error) error {
	for err == nil {
		var m *T
		if m, err = stream.Recv(); err == nil {
			err = f(m)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// queryPool asks all schedds about jobs and calls f with each row. It returns which
// schedds did not answer.
func queryPool(c *route.Call, q *wire.PoolQuery, f func(*wire.JobStatus) error) (missing []Unreachable, err error) {
	err = ask(c, func(ctx context.Context, s wire.ScheddClient) error {
		stream, err := s.QueryPool(ctx, q)
		return drain(stream, err, func(row *wire.PoolRow) error {
			switch of := row.GetOf().(type) {
			case *wire.PoolRow_Silent:
				missing = append(missing, Unreachable{of.Silent.GetNode(), document.PrintableText(of.Silent.GetWhy())})
				return nil
			case *wire.PoolRow_Status:
				return f(of.Status)
			}
			for _, text := range row.GetBatch().GetJobs() {
				status := &wire.JobStatus{}
				err := proto.Unmarshal(text, status)
				if err == nil {
					err = f(status)
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	})
	return missing, err
}
