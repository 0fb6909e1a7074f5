package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/e2e"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// poolBencher measures one pool, or, in a directory of its own, what needs none.
type poolBencher struct {
	ctx   context.Context
	roost string // path of the program
	dir   string
	pool  *e2e.Pool // nil: none
	trace string    // file of the stages of tasks; "": they are not traced

	runFlags
	name    string // of the measurement
	results *resultList
}

// newJobSpec returns the specification of a job of count tasks.
func newJobSpec(count int, executable string, args ...string) *wire.JobSpec {
	ad := classad.New()
	ad.SetString(roost.AttrMyType, "Job")
	ad.SetString(roost.AttrJobName, "bench")
	ad.SetString(roost.AttrCmd, executable)
	ad.SetStrings(roost.AttrArguments, args)
	ad.SetString(roost.AttrIwd, "/")
	ad.SetInt(roost.AttrRequestMemory, 16)
	return &wire.JobSpec{Ad: ad.String(), Count: uint32(count)}
}

// unmatchableJob returns a job that fits no machine, so that it stays in the queue.
func unmatchableJob(count int) *wire.JobSpec {
	spec := newJobSpec(count, "/bin/true")
	ad, err := classad.Parse(spec.Ad)
	if err != nil {
		panic(err)
	}
	if err := ad.SetExpr(roost.AttrRequirements, "TARGET.Nowhere =?= 1"); err != nil {
		panic(err)
	}
	spec.Ad = ad.String()
	return spec
}

func (b *poolBencher) submitJob(spec *wire.JobSpec) (string, error) {
	reply, err := b.pool.Client.Submit(b.ctx,
		&wire.SubmitRequest{Key: strconv.FormatUint(rand.Uint64(), 36), Jobs: []*wire.JobSpec{spec}})
	if err != nil {
		return "", rpc.FromStatus(err)
	}
	return reply.Ids[0], nil
}

// awaitFinal waits until the jobs are final, and fails if any task of them failed.
func (b *poolBencher) awaitFinal(ids ...string) error {
	stream, err := b.pool.Client.Watch(b.ctx,
		&wire.WatchRequest{Selection: &wire.Selection{Selectors: ids}, IntervalMs: 20})
	if err != nil {
		return rpc.FromStatus(err)
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			if err.Error() == "EOF" {
				return nil
			}
			return rpc.FromStatus(err)
		}
		if n := event.Status.Counts["failed"]; n > 0 {
			return fmt.Errorf("%d tasks of %s failed: %s", n, event.Status.Id, event.Status.Reason)
		}
	}
}

// newFifoJob makes a fifo in dir, and the specification of a job that writes to it.
func newFifoJob(dir string) (fifo string, spec *wire.JobSpec, err error) {
	fifo = filepath.Join(dir, "started")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		return "", nil, err
	}
	spec = newJobSpec(1, "/bin/echo", "started")
	ad, err := classad.Parse(spec.Ad)
	if err != nil {
		return "", nil, err
	}
	ad.SetString(roost.AttrOut, fifo)
	spec.Ad = ad.String()
	return fifo, spec, nil
}

// measureLatency measures from before a submit to the first byte that the job writes.
func (b *poolBencher) measureLatency() error {
	fifo, spec, err := newFifoJob(b.pool.Dir)
	if err != nil {
		return err
	}
	var api, cli gauge.DurationSamples
	for range 200 {
		d, id, err := b.startOne(fifo, func() (string, error) { return b.submitJob(spec) })
		if err != nil {
			return err
		}
		api = append(api, d)
		if err := b.awaitFinal(id); err != nil {
			return err
		}
		// claims are released meanwhile: each job finds an idle pool
		if err := sleepFor(b.ctx, 50+rand.IntN(150)); err != nil {
			return err
		}
	}
	file := filepath.Join(b.pool.Dir, "job.hcl")
	text := fmt.Sprintf("job \"echo\" {\n  executable = \"/bin/echo\"\n  arguments = [\"started\"]\n  stdout = %q\n}\n",
		fifo)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	for range 60 {
		d, id, err := b.startOne(fifo, func() (string, error) {
			out, errs, code := b.pool.Command(b.ctx, "submit", "-q", file)
			if code != 0 {
				return "", fmt.Errorf("roost submit: %s", errs)
			}
			return strings.TrimSpace(out), nil
		})
		if err != nil {
			return err
		}
		cli = append(cli, d)
		if err := b.awaitFinal(id); err != nil {
			return err
		}
		if err := sleepFor(b.ctx, 50+rand.IntN(150)); err != nil {
			return err
		}
	}
	b.addRow("submit to start, idle pool, over the API", "p50 %v  p99 %v", api.Percentile(50), api.Percentile(99))
	b.addRow("submit to start, idle pool, roost submit FILE", "p50 %v  p99 %v", cli.Percentile(50), cli.Percentile(99))
	return nil
}

// startOne submits and reads the fifo. It returns how long it took until the job wrote.
func (b *poolBencher) startOne(fifo string, submit func() (string, error)) (time.Duration, string, error) {
	wrote := make(chan time.Time, 1)
	go func() {
		if f, err := os.Open(fifo); err == nil {
			f.Read(make([]byte, 16))
			wrote <- time.Now()
			f.Close()
		}
	}()
	begin := time.Now()
	id, err := submit()
	if err != nil {
		return 0, "", err
	}
	select {
	case t := <-wrote:
		return t.Sub(begin), id, nil
	case <-time.After(20 * time.Second):
		return 0, id, fmt.Errorf("%s has not started after 20s", id)
	}
}

// measureThroughput measures jobs of /bin/true over 16 slots, as one array and as single
// jobs.
func (b *poolBencher) measureThroughput() error {
	const array, single = 3000, 2000
	var arrays, singles, crowd roundTimes
	var loops gauge.FigureSamples
	for range 3 {
		rate, err := forkLoopRate()
		if err != nil {
			return err
		}
		loops = append(loops, rate)
		err = b.timeRounds(&arrays, array, func() error {
			id, err := b.submitJob(newJobSpec(array, "/bin/true"))
			if err != nil {
				return err
			}
			return b.awaitFinal(id)
		})
		if err != nil {
			return err
		}
		if err := b.timeRounds(&singles, single, func() error { return b.submitEach(1, single) }); err != nil {
			return err
		}
		if err := b.timeRounds(&crowd, single, func() error { return b.submitEach(8, single) }); err != nil {
			return err
		}
	}
	b.addRow("/bin/true by fork and exec, loops on all cores", "%.0f finished/s", loops.Median())
	arrays.resultText(b, fmt.Sprintf("/bin/true, an array of %d, 16 slots", array))
	share := arrays.perSecond.Median() / loops.Median()
	b.addAimedRow("the array, of what the loops reach", share >= forkLoopTarget, leastPrefix+fmt.Sprint(forkLoopTarget),
		"%.2f", share)
	singles.resultText(b, fmt.Sprintf("/bin/true, %d submits one by one, 16 slots", single))
	crowd.resultText(b, fmt.Sprintf("/bin/true, %d submits by 8 clients, 16 slots", single))
	return nil
}

// submitEach submits n jobs of one task each, by concurrent clients, and waits for all.
func (b *poolBencher) submitEach(clients, n int) error {
	ids := make([]string, n)
	var all errgroup.Group
	for c := range clients {
		all.Go(func() (err error) {
			for i := c; i < n && err == nil; i += clients {
				ids[i], err = b.submitJob(newJobSpec(1, "/bin/true"))
			}
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	return b.awaitFinal(ids...)
}

// roundTimes has the times of several rounds of the same work.
type roundTimes struct {
	perSecond, cost gauge.FigureSamples
	parts           string
}

func (b *poolBencher) timeRounds(r *roundTimes, jobs int, work func() error) error {
	before, begin := b.poolCPUTime(), time.Now()
	if err := work(); err != nil {
		return err
	}
	r.perSecond = append(r.perSecond, float64(jobs)/time.Since(begin).Seconds())
	var cost float64
	cost, r.parts = b.poolCPUTime().millisSince(before, jobs)
	r.cost = append(r.cost, cost)
	return nil
}

func (r *roundTimes) resultText(b *poolBencher, what string) {
	b.addRow(what, "%.0f finished/s, %.2f CPU ms a job (%s)", r.perSecond.Median(), r.cost.Median(), r.parts)
}

// measureLargeArray measures how a large array is accepted.
func (b *poolBencher) measureLargeArray() error {
	const tasks = 100_000
	var took gauge.DurationSamples
	before := b.daemonsRSS("schedd")
	var grown int64
	for i := range 5 {
		begin := time.Now()
		id, err := b.submitJob(unmatchableJob(tasks))
		if err != nil {
			return err
		}
		took = append(took, time.Since(begin))
		if i == 0 {
			if err := sleepFor(b.ctx, 1000); err != nil {
				return err
			}
			grown = b.daemonsRSS("schedd") - before
			b.addRow("RSS with 100,000 tasks of one array queued", "%s", b.addRSSLine())
		}
		if _, err := b.pool.Client.Act(b.ctx, &wire.ActRequest{
			Verb: wire.ActRequest_REMOVE, Selection: &wire.Selection{Selectors: []string{id}},
		}); err != nil {
			return rpc.FromStatus(err)
		}
	}
	b.addRow("an array of 100,000 tasks accepted, on disk", "p50 %v  max %v", took.Percentile(50), took.Percentile(100))
	b.addRow("schedd's growth for each of the 100,000 tasks", "%.0f bytes", float64(grown)/tasks)
	return nil
}

// measureSubmits measures single submits over the API.
func (b *poolBencher) measureSubmits() error {
	for _, clients := range []int{1, 16} {
		var rates gauge.FigureSamples
		for range 3 {
			rate, err := b.submitRate(clients, 2000)
			if err != nil {
				return err
			}
			rates = append(rates, rate)
		}
		b.addRow(fmt.Sprintf("single submits over the API, %d at a time", clients), "%.0f/s", rates.Median())
	}
	var loop gauge.DurationSamples
	for range 50 {
		begin := time.Now()
		if _, errs, code := b.pool.Command(b.ctx, "qsub", "-h", "--", "/bin/true"); code != 0 {
			return fmt.Errorf("qsub: %s", errs)
		}
		loop = append(loop, time.Since(begin))
	}
	b.addRow("the qsub command itself", "p50 %v  p99 %v", loop.Percentile(50), loop.Percentile(99))
	return nil
}

func (b *poolBencher) submitRate(clients, total int) (float64, error) {
	begin := time.Now()
	errs := make(chan error, clients)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range total / clients {
				if _, err := b.submitJob(unmatchableJob(1)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	all.Wait()
	select {
	case err := <-errs:
		return 0, err
	default:
	}
	return float64(total) / time.Since(begin).Seconds(), nil
}

// measureMemory measures an idle pool, and the starters of a pool whose 16 slots are in
// use.
func (b *poolBencher) measureMemory() error {
	if err := sleepFor(b.ctx, 2000); err != nil {
		return err
	}
	b.addRow("machine", "%d cores, %s", runtime.NumCPU(), runtime.GOARCH)
	b.addRow("RSS of an idle pool", "%s", b.addRSSLine())
	pss, err := b.daemonsPSS()
	if err != nil {
		return err
	}
	b.addRow("PSS of all its daemons together", "%.0f MiB", float64(pss)/(1<<20))
	id, err := b.submitJob(newJobSpec(16, "/bin/sleep", "1000"))
	if err != nil {
		return err
	}
	if err := b.awaitRunning(id, 16); err != nil {
		return err
	}
	var starters gauge.FigureSamples
	for _, p := range gauge.ListProcesses() {
		if p.Command == "roost-starter" && p.IsBelow(b.pool.Dir) {
			starters = append(starters, float64(p.RSS)/(1<<20))
		}
	}
	b.addAimedRow("RSS of one starter beside a running task", starters.Median() <= 4, "4 MiB", "median %.1f MiB of %d",
		starters.Median(), len(starters))
	_, err = b.pool.Client.Act(b.ctx, &wire.ActRequest{
		Verb: wire.ActRequest_REMOVE, Force: true, Selection: &wire.Selection{Selectors: []string{id}},
	})
	return rpc.FromStatus(err)
}

func (b *poolBencher) awaitRunning(id string, tasks uint32) error {
	stream, err := b.pool.Client.Watch(b.ctx, &wire.WatchRequest{Selection: &wire.Selection{Selectors: []string{id}}})
	for err == nil {
		var event *wire.WatchEvent
		if event, err = stream.Recv(); err == nil && event.Status.Counts["running"] == tasks {
			return nil
		}
	}
	return rpc.FromStatus(err)
}

func sleepFor(ctx context.Context, ms int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return nil
	}
}
