package frame

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/config/pooldir"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// How long a command puts up with a schedd that does not answer. Its master restarts it
// well within a second.
const (
	AskTimeout    = 5 * time.Second  // to be told something
	SubmitTimeout = 15 * time.Second // to hand over a job
	WatchTimeout  = time.Minute      // while waiting for jobs, which takes long anyway
	hintDelay     = 1500 * time.Millisecond
)

// ConnectSchedd connects to the schedd that the command speaks to, or returns the
// connection that it has.
func (c *Invocation) ConnectSchedd() (*scheddapi.ScheddClient, error) {
	if c.client != nil {
		return c.client, nil
	}
	conn, err := c.remoteConn()
	c.isRemote = conn != nil
	if conn == nil && err == nil {
		conn, err = c.DialSchedd()
	}
	if err != nil {
		return nil, err
	}
	c.conn, c.client = conn, scheddapi.NewScheddClient(conn)
	return c.client, nil
}

// DialSchedd connects to the schedd of this machine. On a machine without one it takes
// the only login of the user.
func (c *Invocation) DialSchedd() (scheddapi.Conn, error) {
	addr, err := c.FindSocket()
	if err != nil {
		if e := c.Dialer.OnlyLogin(c); e != nil {
			c.isRemote = true
			return e.Dial()
		}
		return nil, err
	}
	return c.Dialer.DialSocket(addr)
}

// FindSocket finds the socket of this machine's schedd, see pooldir.FindPool.
func (c *Invocation) FindSocket() (string, error) {
	dir := ""
	if !c.Command.RawArgs {
		dir = c.StringFlag("dir")
	}
	return pooldir.FindPool(dir, c.Getenv)
}

// silenceAdvice is what helps a user whose schedd does not answer.
func (c *Invocation) silenceAdvice() string {
	if c.isRemote {
		return "the schedd that you are logged in at is on another node: is that node up, and its pool?"
	}
	dir := ""
	if !c.Command.RawArgs {
		dir = c.StringFlag("dir")
	}
	return "is the pool running? see: roost doctor; " + pooldir.StartAdvice(dir, c.Getenv)
}

// Retry calls f until it succeeds or fails for good, or patience has passed without
// progress. F gets a context and a function to call whenever it makes progress.
func (c *Invocation) Retry(patience time.Duration, f func(ctx context.Context, alive func()) error) error {
	last, hinted, pause := time.Now(), false, 20*time.Millisecond
	alive := func() { last, hinted, pause = time.Now(), false, 20*time.Millisecond }
	for {
		err := DecodeError(f(c.Context, alive))
		away := time.Since(last)
		if err == nil || !errors.Is(err, roost.Unavailable) || c.Context.Err() != nil {
			return err
		}
		if away > patience {
			return WithHint(err, c.silenceAdvice())
		}
		if away > hintDelay && !hinted && c.ErrScreen.Terminal {
			hinted = true
			fmt.Fprintln(c.Stderr, "roost: the schedd does not answer; trying again (Ctrl-C gives up)")
		}
		select {
		case <-time.After(pause):
		case <-c.Context.Done():
			return c.Context.Err()
		}
		pause = min(pause*2, time.Second)
	}
}

// CallSchedd does one exchange with the schedd, and repeats it while the schedd does not
// answer.
func (c *Invocation) CallSchedd(patience time.Duration, f func(ctx context.Context,
	s *scheddapi.ScheddClient) error) error {
	s, err := c.ConnectSchedd()
	if err != nil {
		return err
	}
	return c.Retry(patience, func(ctx context.Context, _ func()) error {
		ctx, cancel := context.WithTimeout(ctx, patience+30*time.Second)
		defer cancel()
		return f(ctx, s)
	})
}

// QueryJobs asks the command's schedd about jobs or tasks.
func (c *Invocation) QueryJobs(req *scheddapi.QueryRequest) ([]*scheddapi.JobStatus, error) {
	var found []*scheddapi.JobStatus
	err := c.CallSchedd(AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) error {
		stream, err := s.Query(ctx, req)
		if err != nil {
			return err
		}
		found, err = DrainStream(stream, 0)
		return err
	})
	return found, err
}

// QueryAds returns ads of the pool as text.
func (c *Invocation) QueryAds(q *scheddapi.AdQuery) ([]string, error) {
	var texts []string
	err := c.CallSchedd(AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) error {
		stream, err := s.Ads(ctx, q)
		if err != nil {
			return err
		}
		found, err := DrainStream(stream, 0)
		texts = texts[:0]
		for _, ad := range found {
			texts = append(texts, ad.GetAd())
		}
		return err
	})
	return texts, err
}

// DrainStream reads a stream to its end, or at most limit messages of it when limit > 0.
func DrainStream[T any](stream scheddapi.Receiver[T], limit int) ([]*T, error) {
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
