package main

import (
	"context"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/e2e"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/identity/pki"
	"github.com/roost-batch/roost/internal/rpc"
)

const (
	tasksPerSession  = 10
	renewalCPUTarget = 20 // percent of a core
	// how often a startd reports what its tasks use (startd/meter)
	usageReportInterval = 6 * time.Second
)

// scaleBencher measures one schedd with many sessions.
type scaleBencher struct {
	*poolBencher
	emptyRSS int64 // of the schedd without sessions
}

// measureScale measures one schedd with many sessions and ten running tasks on each. Each
// session is a TLS connection with an endpoint that answers as a startd does.
func (b *poolBencher) measureScale() error {
	return (&scaleBencher{poolBencher: b}).measure()
}

// measure submits the tasks, kills the schedd, and measures the next one.
func (b *scaleBencher) measure() error {
	id, err := b.startScalePool()
	if err != nil {
		return err
	}
	defer b.pool.Stop()
	endpoints, err := startEndpoints(id, b.sessions, tasksPerSession)
	if err != nil {
		return err
	}
	defer endpoints.stop()
	ctx, cancel := context.WithCancel(b.ctx)
	group, ctx := errgroup.WithContext(ctx)
	defer group.Wait()
	defer cancel()
	group.Go(func() error {
		err := endpoints.advertise(ctx, "unix:"+filepath.Join(b.pool.Dir, "run", "collector.sock"))
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
	b.emptyRSS = b.daemonsRSS("schedd")
	tasks := b.sessions * tasksPerSession
	began := time.Now()
	job, err := b.submitJob(newJobSpec(tasks, "/bin/sleep", "100000"))
	if err != nil {
		return err
	}
	if err := b.awaitRunning(job, uint32(tasks)); err != nil {
		return err
	}
	what := fmt.Sprintf("%d sessions, %d running tasks: ", b.sessions, tasks)
	b.addRow(what+"all tasks run after", "%v", time.Since(began).Round(time.Millisecond))
	if err := b.measureRestarts(endpoints, what, job, uint32(tasks)); err != nil {
		return err
	}
	return b.steadyState(ctx, endpoints, what)
}

// startScalePool starts a pool without startds, whose schedd has a certificate. It
// returns the identity of the endpoints.
func (b *scaleBencher) startScalePool() (*rpc.Identity, error) {
	authority := filepath.Join(b.dir, "ca")
	if err := pki.Init(authority, "bench"); err != nil {
		return nil, err
	}
	central, err := pki.IssueTo(authority, "submit", []peer.Role{peer.Schedd, peer.Negotiator, peer.Collector})
	if err != nil {
		return nil, err
	}
	execute, err := pki.IssueTo(authority, endpointHost, []peer.Role{peer.Startd})
	if err != nil {
		return nil, err
	}
	id, err := pki.Load(&execute)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(b.dir, "pool")
	socket := func(name string) string { return "unix:" + filepath.Join(dir, "run", name+".sock") }
	env, err := b.poolEnvironment()
	if err != nil {
		return nil, err
	}
	b.pool, err = e2e.Start(b.ctx, e2e.PoolOptions{Roost: b.roost, Dir: dir, Env: env, SharesTerminals: true,
		Node: &config.Node{
			Name: "submit", Pool: "bench", Dir: dir, FileSystemDomain: "cluster", TLS: &central,
			Collectors: []string{socket("collector")}, Negotiators: []string{socket("negotiator")},
			Collector:  &config.CollectorSettings{Listen: []string{socket("collector")}},
			Negotiator: &config.NegotiatorSettings{Listen: []string{socket("negotiator")}},
			Schedd:     &config.ScheddSettings{Socket: socket("schedd"), SocketMode: 0o600, AllowRoot: true},
		}})
	return id, err
}

// scheddRestart is how long after SIGKILL the next schedd runs, answers, and has all
// sessions.
type scheddRestart struct{ runs, answers, sessions gauge.DurationSamples }

// measureRestarts kills the schedd several times.
func (b *scaleBencher) measureRestarts(endpoints *endpointGroup, what, job string, tasks uint32) error {
	var took scheddRestart
	for range 5 {
		if err := sleepFor(b.ctx, 2000); err != nil { // the work of the restart before is over
			return err
		}
		if err := b.restartSchedd(&took, endpoints, job, tasks); err != nil {
			return err
		}
	}
	b.addRow(what+"schedd killed, has all sessions after",
		"p50 %v  max %v; the next one runs after %v, answers after %v", took.sessions.Percentile(50),
		took.sessions.Percentile(100), took.runs.Percentile(50), took.answers.Percentile(50))
	return nil
}

// restartSchedd kills the schedd and waits until the next one knows all again.
func (b *scaleBencher) restartSchedd(took *scheddRestart, endpoints *endpointGroup, job string, tasks uint32) error {
	schedd, err := b.scheddProcess()
	if err != nil {
		return err
	}
	began := time.Now()
	if err := syscall.Kill(schedd.PID, syscall.SIGKILL); err != nil {
		return err
	}
	var runs, answers time.Duration
	for sessions := 0; sessions < len(endpoints.list) || answers == 0; {
		if again, err := b.scheddProcess(); runs == 0 && err == nil && again.PID != schedd.PID {
			runs = time.Since(began)
		}
		if runs > 0 && answers == 0 && b.awaitRunning(job, tasks) == nil {
			answers = time.Since(began)
		}
		attempts := 0
		if sessions, attempts = endpoints.counts(); attempts != int(tasks) {
			return fmt.Errorf("%d attempts are left of %d after the schedd was killed", attempts, tasks)
		}
		if time.Since(began) > time.Minute {
			return fmt.Errorf("the schedd has %d sessions of %d a minute after it was killed", sessions,
				len(endpoints.list))
		}
		if err := sleepFor(b.ctx, 5); err != nil {
			return err
		}
	}
	took.runs, took.answers = append(took.runs, runs), append(took.answers, answers)
	took.sessions = append(took.sessions, time.Since(began))
	return nil
}

func (b *scaleBencher) scheddProcess() (gauge.ProcessStat, error) {
	for _, p := range gauge.ListProcesses() {
		if p.IsBelow(b.pool.Dir) && daemonRole(p) == "schedd" {
			return p, nil
		}
	}
	return gauge.ProcessStat{}, fmt.Errorf("the schedd does not run")
}

// steadyState measures what the sessions cost while nothing begins or ends. At first
// there are only renewals of leases, then reports of usage, too.
func (b *scaleBencher) steadyState(ctx context.Context, endpoints *endpointGroup, what string) error {
	if err := sleepFor(ctx, 3000); err != nil { // the work of the restart is over
		return err
	}
	endpoints.renewals.Store(0)
	percent, err := b.scheddLoad(ctx, time.Minute)
	if err != nil {
		return err
	}
	renewals := b.daemonsRSS("schedd")
	b.addAimedRow(what+"renewals for a minute", percent <= renewalCPUTarget,
		fmt.Sprintf("%d %% of a core", renewalCPUTarget), "%.1f %% of a core, %d renewals", percent,
		endpoints.renewals.Load())
	reports, end := context.WithCancel(ctx)
	defer end()
	go endpoints.runUsageReports(reports, usageReportInterval)
	if err := sleepFor(ctx, 1000); err != nil {
		return err
	}
	endpoints.reports.Store(0)
	if percent, err = b.scheddLoad(ctx, 30*time.Second); err != nil {
		return err
	}
	b.addRow(what+"and every task busy, for half a minute", "%.1f %% of a core, %d reports of usage", percent,
		endpoints.reports.Load())
	busy := b.daemonsRSS("schedd")
	b.addRow(what+"memory of the schedd", "%.0f MiB, %.0f MiB with reports of usage, %.0f KiB for each session",
		float64(renewals)/(1<<20), float64(busy)/(1<<20), float64(renewals-b.emptyRSS)/1024/float64(b.sessions))
	return nil
}

// scheddLoad returns the CPU time of the schedd in a while, in percent of a core.
func (b *scaleBencher) scheddLoad(ctx context.Context, while time.Duration) (float64, error) {
	before, err := b.scheddProcess()
	if err != nil {
		return 0, err
	}
	began := time.Now()
	if err := sleepFor(ctx, int(while.Milliseconds())); err != nil {
		return 0, err
	}
	after, err := b.scheddProcess()
	if err != nil {
		return 0, err
	}
	if after.PID != before.PID {
		return 0, fmt.Errorf("the schedd was restarted during the measurement")
	}
	return 100 * (after.CPUSeconds - before.CPUSeconds) / time.Since(began).Seconds(), nil
}
