// Command bench measures a pool of real processes on this machine and prints medians of
// one run. Run it with make bench. If a value has a target, the target is printed beside
// it.
//
// It measures how soon a job starts, when it passes each stage of its life, how many
// jobs finish in a second, what a job costs, how fast submits are accepted, and how
// much memory the daemons need; what a thousand sessions with startds and ten thousand
// running tasks cost a schedd; on an execute node, how fast tasks are frozen, also at a
// key, how fast they start, and how fast a new startd adopts the tasks of a dead one;
// what plans cost for cells of up to 100,000 machines; how long roost why takes in a
// cell of 10,000 machines, and how long the pages of the web daemon take there; how soon
// the name of a task of a service goes when the task or its machine dies, how soon a
// service is ready, and how long an update of a thousand tasks takes; and of
// the PBS commands, how fast qsub is in a shell, what qstat costs with 100,000 jobs and
// with an array of a million tasks, what 100,000 queued jobs cost in memory, how soon a
// schedd with them answers after it was killed, and whether a thousand clients that poll
// their jobs slow down the running ones; what submits and short jobs notice of browsers,
// of scripts, and of a web daemon and an accountant that hang; and of the accounts, how
// fast attempts are stored, and how long reports, pages and exports take.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/daemon"
	"github.com/roost-batch/roost/internal/e2e"
	"github.com/roost-batch/roost/internal/tasktrace"
)

func main() {
	only := flag.String("only", "", "run only the measurements of these `names`, with commas between: "+
		strings.Join(measurementNames(), " "))
	keepFiles := flag.Bool("keep", false, "keep the pool's directory")
	table := flag.String("csv", "", "write the results as a table to this `FILE`, with commas between the columns")
	asJSON := flag.Bool("json", false, "print the results as JSON; their lines go to the standard error")
	profiles := flag.String("profile", "",
		"have each daemon write a CPU profile of its life into `DIR`/MEASUREMENT, for go tool pprof")
	sessions := flag.Int("sessions", 1000, "number of startds' sessions in the measurement scale")
	accounts := flag.Int("accounts", 200_000,
		"number of attempts in the measurement accounts; 10000000 is the aim of SQLite, 100000000 that of PostgreSQL")
	database := flag.String("database", "",
		"empty PostgreSQL database of the measurement accounts, as `ADDRESS`; without it SQLite is measured")
	span := flag.Duration("span", 20*time.Second, "`TIME` of each part of the measurement beside; 10m is the aim")
	flag.Parse()
	all := &resultList{out: os.Stdout}
	if *asJSON {
		all.out = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// finished results are written even after an error
	err := run(ctx, all, *only, runFlags{keepFiles: *keepFiles, profileDir: *profiles,
		sessions: *sessions, accounts: *accounts, database: *database, span: *span})
	if err := errors.Join(err, all.writeResults(*table, *asJSON)); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measurementCase is one part of the bench, on a new pool of its own. It has a number of
// nodes and cores in all; without nodes it needs no pool.
type measurementCase struct {
	name        string
	nodes, cpus int
	run         func(*poolBencher) error
	traced      bool // the pool traces its tasks
	web         bool // the pool has its web daemon
}

func measurements() []measurementCase {
	return []measurementCase{
		{name: "memory", nodes: 2, cpus: 16, run: (*poolBencher).measureMemory},
		{name: "match", run: (*poolBencher).measureMatching},
		{name: "why", nodes: 1, cpus: 2, run: (*poolBencher).measureWhy},
		{name: "freeze", run: (*poolBencher).measureFreeze},
		{name: "keys", run: (*poolBencher).measureKeys},
		{name: "start", run: (*poolBencher).measureStart},
		{name: "adopt", nodes: 1, cpus: 100, run: (*poolBencher).measureAdoption},
		{name: "waiting", nodes: 1, cpus: 2, run: (*poolBencher).measureQueueWait},
		{name: "names", nodes: 1, cpus: 8, run: measureNames},
		{name: "services", nodes: 2, cpus: 32, run: measureServices},
		{name: "stacked", nodes: 1, cpus: 2, run: (*poolBencher).measureStreams},
		{name: "latency", nodes: 2, cpus: 16, run: (*poolBencher).measureLatency},
		{name: "waterfall", nodes: 2, cpus: 16, run: (*poolBencher).measureWaterfall, traced: true},
		{name: "submit", nodes: 2, cpus: 16, run: (*poolBencher).measureSubmits},
		{name: "queue", nodes: 2, cpus: 16, run: (*poolBencher).measureLargeArray},
		{name: "throughput", nodes: 2, cpus: 16, run: (*poolBencher).measureThroughput},
		{name: "scale", run: (*poolBencher).measureScale},
		{name: "qsub", nodes: 1, cpus: 1, run: (*poolBencher).measureQsub},
		{name: "slurm", nodes: 1, cpus: srunLoops,
			run: func(b *poolBencher) error { return slurmBencher{b}.measure() }},
		{name: "qstat", nodes: 1, cpus: 1, run: (*poolBencher).measureQstat},
		{name: "restart", nodes: 1, cpus: 1, run: (*poolBencher).measureRestart},
		{name: "poll", nodes: 2, cpus: 16, run: (*poolBencher).measurePolling},
		{name: "web", nodes: 1, cpus: 2, web: true,
			run: func(b *poolBencher) error { return webBencher{b}.measure() }},
		{name: "beside", nodes: 1, cpus: 4, web: true, run: measureBeside},
		{name: "accounts", run: measureAccounts},
		{name: "array", nodes: 1, cpus: 1, run: (*poolBencher).measureArray},
	}
}

func measurementNames() []string {
	var all []string
	for _, m := range measurements() {
		all = append(all, m.name)
	}
	return all
}

// runFlags are those of the command line that each measurement follows.
type runFlags struct {
	keepFiles  bool
	profileDir string        // "": no profiles
	sessions   int           // of the measurement scale
	accounts   int           // attempts of the measurement accounts
	database   string        // of it; "": SQLite
	span       time.Duration // of a part of the measurement beside
}

func run(ctx context.Context, all *resultList, only string, how runFlags) error {
	var wanted []string
	if only != "" {
		wanted = strings.Split(only, ",")
	}
	for _, name := range wanted {
		if !slices.Contains(measurementNames(), name) {
			return fmt.Errorf("no measurement is called %q; there are %s", name, strings.Join(measurementNames(), ", "))
		}
	}
	dir, err := os.MkdirTemp("", "roost-bench-")
	if err != nil {
		return err
	}
	if how.keepFiles {
		fmt.Fprintln(all.out, "directory:", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	roost, err := e2e.Build(ctx, dir)
	if err != nil {
		return err
	}
	for _, m := range measurements() {
		if wanted != nil && !slices.Contains(wanted, m.name) {
			continue
		}
		if err := runOne(ctx, all, m, roost, filepath.Join(dir, m.name), how); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

func runOne(ctx context.Context, all *resultList, m measurementCase, roost, dir string, how runFlags) error {
	b := &poolBencher{ctx: ctx, roost: roost, dir: dir, name: m.name, results: all, runFlags: how}
	if m.traced {
		b.trace = dir + ".trace"
	}
	if m.nodes == 0 {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		return m.run(b)
	}
	env, err := b.poolEnvironment()
	if err != nil {
		return err
	}
	pool, err := e2e.Start(ctx, e2e.PoolOptions{Roost: roost, Dir: dir, Nodes: m.nodes, CPUs: m.cpus, Env: env,
		Web: m.web})
	if err != nil {
		return err
	}
	b.pool = pool
	err = m.run(b)
	if serr := pool.Stop(); err == nil {
		err = serr
	}
	return err
}

// poolEnvironment returns what a measurement adds to the environment of its pool.
func (b *poolBencher) poolEnvironment() (env []string, err error) {
	if b.trace != "" {
		env = append(env, tasktrace.FileVariable+"="+b.trace)
	}
	if b.profileDir != "" {
		dir, err := filepath.Abs(filepath.Join(b.profileDir, b.name))
		if err == nil {
			err = os.MkdirAll(dir, 0o755)
		}
		if err != nil {
			return nil, err
		}
		env = append(env, daemon.ProfileDir+"="+dir)
	}
	return env, nil
}
