package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// Clients ask every few seconds how their jobs are, as workflow engines do, while short jobs run.
const (
	pollers   = 1000
	pollEvery = 5 * time.Second
	pollJobs  = 20 // of each that asks
	pollRate  = 300
	pollFor   = 20 * time.Second
	pollHarm  = 0.9 // of the throughput that is left
)

// poll measures how many jobs finish in a second while clients ask, and while nobody does.
func (b *bencher) poll() error {
	if err := b.fill(0, 10_000, "-h"); err != nil {
		return err
	}
	var alone, beside gauge.Figures
	var answers gauge.Samples
	for range 3 {
		rate, err := b.steady()
		if err != nil {
			return err
		}
		alone = append(alone, rate)
		c := b.gather()
		rate, err = b.steady()
		took, cerr := c.disperse()
		if err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
		beside, answers = append(beside, rate), append(answers, took...)
	}
	left := beside.Median() / alone.Median()
	b.row(fmt.Sprintf("/bin/true, %d submits/s, nobody asks", pollRate), "%.0f finished/s", alone.Median())
	b.aimed(fmt.Sprintf("the same, %d clients ask every %v", pollers, pollEvery), left >= pollHarm, fmt.Sprintf("%.0f %% less", 100*(1-pollHarm)), "%.0f finished/s, %.2f of that; %d answers, p50 %v  p99 %v",
		beside.Median(), left, len(answers), answers.At(50), answers.At(99))
	return nil
}

// steady submits so many jobs a second for a while, and returns how many finished in each until all had.
func (b *bencher) steady() (perSecond float64, err error) {
	began := time.Now()
	var ids []string
	for time.Since(began) < pollFor {
		due := int(time.Since(began).Seconds()*pollRate) + 1 - len(ids)
		if due <= 0 {
			if err := pause(b.ctx, 2); err != nil {
				return 0, err
			}
			continue
		}
		req := &wire.SubmitRequest{Key: fmt.Sprint("steady-", began.UnixNano(), "-", len(ids))}
		for range min(due, 20) {
			req.Jobs = append(req.Jobs, job(1, "/bin/true"))
		}
		reply, err := wire.Submit(b.ctx, b.pool.Client, req)
		if err != nil {
			return 0, rpc.FromStatus(err)
		}
		ids = append(ids, reply.Ids...)
	}
	if err := b.await(ids[len(ids)-1]); err != nil {
		return 0, err
	}
	return float64(len(ids)) / time.Since(began).Seconds(), nil
}

// askers is the clients, each with a connection of its own.
type askers struct {
	stop   context.CancelFunc
	all    sync.WaitGroup
	mu     sync.Mutex
	took   gauge.Samples
	failed error
}

func (b *bencher) gather() *askers {
	ctx, stop := context.WithCancel(b.ctx)
	c := &askers{stop: stop}
	for i := range pollers {
		c.all.Go(func() {
			if err := c.ask(ctx, filepath.Join(b.pool.Dir, "run", "schedd.sock"), i); err != nil && ctx.Err() == nil {
				c.mu.Lock()
				c.failed = err
				c.mu.Unlock()
			}
		})
	}
	return c
}

// ask asks for the jobs of one client, as qstat -f -F json -x id… does, until they disperse.
func (c *askers) ask(ctx context.Context, socket string, who int) error {
	conn, err := rpc.Dial("unix:"+socket, nil, "")
	if err != nil {
		return err
	}
	defer conn.Close()
	client := wire.NewScheddClient(conn)
	req := &wire.PoolQuery{Query: qstatQuery()}
	for i := range pollJobs {
		req.Query.Selection.Selectors = append(req.Query.Selection.Selectors, fmt.Sprint(1+(who*7+i*311)%10_000))
	}
	if err := sleep(ctx, pollEvery*time.Duration(who)/pollers); err != nil {
		return nil
	}
	for {
		began := time.Now()
		stream, err := client.QueryPool(ctx, req)
		for err == nil {
			_, err = stream.Recv()
		}
		if err != io.EOF {
			return rpc.FromStatus(err)
		}
		c.mu.Lock()
		c.took = append(c.took, time.Since(began))
		c.mu.Unlock()
		if err := sleep(ctx, pollEvery-time.Since(began)); err != nil {
			return nil
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// disperse ends them and returns how long the answers took.
func (c *askers) disperse() (gauge.Samples, error) {
	c.stop()
	c.all.Wait()
	if len(c.took) == 0 && c.failed == nil {
		c.failed = fmt.Errorf("nobody of %d had an answer", pollers)
	}
	return c.took, c.failed
}

// qstatQuery is what qstat -f -x asks.
func qstatQuery() *wire.QueryRequest {
	return &wire.QueryRequest{
		Selection: &wire.Selection{}, History: true, Ads: true, Table: true,
		Attributes: []string{roost.AttrPBS, roost.AttrWalltime, roost.AttrErr, roost.AttrOut, roost.AttrIwd, roost.AttrRerunnable, roost.AttrEnvironment},
	}
}
