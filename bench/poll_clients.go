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

// Clients poll their jobs every few seconds, as workflow engines do, while short jobs
// run.
const (
	pollers             = 1000
	pollInterval        = 5 * time.Second
	pollJobs            = 20 // jobs of each client
	pollRate            = 300
	pollFor             = 20 * time.Second
	minPolledThroughput = 0.9 // least throughput with polling, as a part of that without
)

// measurePolling measures how many jobs finish in a second with and without polling
// clients.
func (b *poolBencher) measurePolling() error {
	if err := b.fillQueue(0, 10_000, "-h"); err != nil {
		return err
	}
	var alone, beside gauge.FigureSamples
	var answers gauge.DurationSamples
	for range 3 {
		rate, err := b.submitSteadily()
		if err != nil {
			return err
		}
		alone = append(alone, rate)
		c := b.startPollClients()
		rate, err = b.submitSteadily()
		took, cerr := c.stopClients()
		if err == nil {
			err = cerr
		}
		if err != nil {
			return err
		}
		beside, answers = append(beside, rate), append(answers, took...)
	}
	left := beside.Median() / alone.Median()
	b.addRow(fmt.Sprintf("/bin/true, %d submits/s, nobody asks", pollRate), "%.0f finished/s", alone.Median())
	b.addAimedRow(fmt.Sprintf("the same, %d clients ask every %v", pollers, pollInterval), left >= minPolledThroughput,
		fmt.Sprintf("%.0f %% less", 100*(1-minPolledThroughput)),
		"%.0f finished/s, %.2f of that; %d answers, p50 %v  p99 %v",
		beside.Median(), left, len(answers), answers.Percentile(50), answers.Percentile(99))
	return nil
}

// submitSteadily submits jobs at a constant rate for a while. It returns how many
// finished in a second until all had.
func (b *poolBencher) submitSteadily() (perSecond float64, err error) {
	began := time.Now()
	var ids []string
	for time.Since(began) < pollFor {
		due := int(time.Since(began).Seconds()*pollRate) + 1 - len(ids)
		if due <= 0 {
			if err := sleepFor(b.ctx, 2); err != nil {
				return 0, err
			}
			continue
		}
		req := &wire.SubmitRequest{Key: fmt.Sprint("steady-", began.UnixNano(), "-", len(ids))}
		for range min(due, 20) {
			req.Jobs = append(req.Jobs, newJobSpec(1, "/bin/true"))
		}
		reply, err := wire.SendSubmission(b.ctx, b.pool.Client, req)
		if err != nil {
			return 0, rpc.FromStatus(err)
		}
		ids = append(ids, reply.Ids...)
	}
	if err := b.awaitFinal(ids[len(ids)-1]); err != nil {
		return 0, err
	}
	return float64(len(ids)) / time.Since(began).Seconds(), nil
}

// pollClients is the clients, each with a connection of its own.
type pollClients struct {
	stop      context.CancelFunc
	all       sync.WaitGroup
	mu        sync.Mutex
	durations gauge.DurationSamples
	failed    error
}

func (b *poolBencher) startPollClients() *pollClients {
	ctx, stop := context.WithCancel(b.ctx)
	c := &pollClients{stop: stop}
	for i := range pollers {
		c.all.Go(func() {
			if err := c.pollOnce(ctx, filepath.Join(b.pool.Dir, "run", "schedd.sock"), i); err != nil &&
				ctx.Err() == nil {
				c.mu.Lock()
				c.failed = err
				c.mu.Unlock()
			}
		})
	}
	return c
}

// pollOnce polls the jobs of one client, as qstat -f -F json -x id… does, until the
// clients are stopped.
func (c *pollClients) pollOnce(ctx context.Context, socket string, who int) error {
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
	if err := sleepContext(ctx, pollInterval*time.Duration(who)/pollers); err != nil {
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
		c.durations = append(c.durations, time.Since(began))
		c.mu.Unlock()
		if err := sleepContext(ctx, pollInterval-time.Since(began)); err != nil {
			return nil
		}
	}
}

func sleepContext(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// stopClients stops the clients and returns how long the answers took.
func (c *pollClients) stopClients() (gauge.DurationSamples, error) {
	c.stop()
	c.all.Wait()
	if len(c.durations) == 0 && c.failed == nil {
		c.failed = fmt.Errorf("nobody of %d had an answer", pollers)
	}
	return c.durations, c.failed
}

// qstatQuery returns the query of qstat -f -x.
func qstatQuery() *wire.QueryRequest {
	return &wire.QueryRequest{
		Selection: &wire.Selection{}, History: true, Ads: true, Table: true,
		Attributes: []string{roost.AttrPBS, roost.AttrWalltime, roost.AttrErr, roost.AttrOut, roost.AttrIwd,
			roost.AttrRerunnable, roost.AttrEnvironment},
	}
}
