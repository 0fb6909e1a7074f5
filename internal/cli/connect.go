package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// How long a command puts up with a schedd that does not answer. Its master restarts it
// well within a second.
const (
	askTimeout    = 5 * time.Second  // to be told something
	submitTimeout = 15 * time.Second // to hand over a job
	watchTimeout  = time.Minute      // while waiting for jobs, which takes long anyway
	hintDelay     = 1500 * time.Millisecond
)

// connectSchedd connects to the pool.
func (c *invocation) connectSchedd() (wire.ScheddClient, error) {
	if c.client != nil {
		return c.client, nil
	}
	conn, err := c.remoteConn()
	if conn == nil && err == nil {
		conn, err = c.dialSchedd()
	}
	if err != nil {
		return nil, err
	}
	c.conn, c.client = conn, wire.NewScheddClient(conn)
	return c.client, nil
}

// dialSchedd connects to the schedd of this machine, or on one without any to the only
// one where the user is logged in.
func (c *invocation) dialSchedd() (*grpc.ClientConn, error) {
	dir := ""
	if !c.cmd.rawArgs {
		dir = c.stringFlag("dir")
	}
	addr, err := config.FindPool(dir, c.getenv)
	if err != nil {
		if e := c.onlyLogin(); e != nil {
			return dialLogin(e)
		}
		return nil, err
	}
	return rpc.Dial(addr, nil, "")
}

// retry does f until it succeeds, fails for a reason that time does not heal, or patience
// has run out since progress was last made. F gets a context and a function to call
// whenever it makes progress.
func (c *invocation) retry(patience time.Duration, f func(ctx context.Context, alive func()) error) error {
	last, hinted, pause := time.Now(), false, 20*time.Millisecond
	alive := func() { last, hinted, pause = time.Now(), false, 20*time.Millisecond }
	for {
		err := decodeError(f(c.ctx, alive))
		away := time.Since(last)
		if err == nil || !errors.Is(err, roost.Unavailable) || c.ctx.Err() != nil {
			return err
		}
		if away > patience {
			return withHint(err, "is the pool running? see: roost doctor; start one with: roost up")
		}
		if away > hintDelay && !hinted && c.err.terminal {
			hinted = true
			fmt.Fprintln(c.stderr, "roost: the schedd does not answer; trying again (Ctrl-C gives up)")
		}
		select {
		case <-time.After(pause):
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
		pause = min(pause*2, time.Second)
	}
}

// callSchedd does one exchange with the schedd, again while it is away.
func (c *invocation) callSchedd(patience time.Duration, f func(ctx context.Context, s wire.ScheddClient) error) error {
	s, err := c.connectSchedd()
	if err != nil {
		return err
	}
	return c.retry(patience, func(ctx context.Context, _ func()) error {
		ctx, cancel := context.WithTimeout(ctx, patience+30*time.Second)
		defer cancel()
		return f(ctx, s)
	})
}

// queryJobs returns what the schedd knows of some jobs or tasks.
func (c *invocation) queryJobs(req *wire.QueryRequest) ([]*wire.JobStatus, error) {
	var found []*wire.JobStatus
	err := c.callSchedd(askTimeout, func(ctx context.Context, s wire.ScheddClient) error {
		stream, err := s.Query(ctx, req)
		if err != nil {
			return err
		}
		found, err = drainStream(stream, 0)
		return err
	})
	return found, err
}

// queryAds returns the text of ads of the pool.
func (c *invocation) queryAds(q *wire.AdQuery) ([]string, error) {
	var texts []string
	err := c.callSchedd(askTimeout, func(ctx context.Context, s wire.ScheddClient) error {
		stream, err := s.Ads(ctx, q)
		if err != nil {
			return err
		}
		found, err := drainStream(stream, 0)
		texts = texts[:0]
		for _, ad := range found {
			texts = append(texts, ad.GetAd())
		}
		return err
	})
	return texts, err
}

// drainStream reads a stream to its end, or at most limit messages of it when limit > 0.
func drainStream[T any](stream grpc.ServerStreamingClient[T], limit int) ([]*T, error) {
	var all []*T
	for limit == 0 || len(all) < limit {
		m, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}
