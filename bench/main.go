// Command bench measures a pool of real processes on this machine and prints medians of
// one run. Run it with make bench. If a value has a target, the target is printed beside
// it.
//
// It measures how soon a job starts, how many jobs finish in a second, what a job costs,
// how fast submits are accepted, and how much memory the daemons need; on an execute
// node, how fast tasks are frozen, also at a key, how fast they start, and how fast a new
// startd adopts the tasks of a dead one; what plans cost for cells of up to 100,000
// machines; how long roost why takes in a cell of 10,000 machines; and of the PBS
// commands, how fast qsub is in a shell, what qstat costs with 100,000 jobs and with an
// array of a million tasks, and whether a thousand clients that poll their jobs slow down
// the running ones.
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

	"github.com/roost-batch/roost/internal/e2e"
)

func main() {
	only := flag.String("only", "", "run only the measurements of these `names`, with commas between: "+
		strings.Join(measurementNames(), " "))
	keepFiles := flag.Bool("keep", false, "keep the pool's directory")
	table := flag.String("csv", "", "write the results as a table to this `FILE`, with commas between the columns")
	asJSON := flag.Bool("json", false, "print the results as JSON; their lines go to the standard error")
	flag.Parse()
	all := &resultList{out: os.Stdout}
	if *asJSON {
		all.out = os.Stderr
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	// finished results are written even after an error
	if err := errors.Join(run(ctx, all, *only, *keepFiles), all.writeResults(*table, *asJSON)); err != nil {
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
}

func measurements() []measurementCase {
	return []measurementCase{
		{"memory", 2, 16, (*poolBencher).measureMemory},
		{"match", 0, 0, (*poolBencher).measureMatching},
		{"why", 1, 2, (*poolBencher).measureWhy},
		{"freeze", 0, 0, (*poolBencher).measureFreeze},
		{"keys", 0, 0, (*poolBencher).measureKeys},
		{"start", 0, 0, (*poolBencher).measureStart},
		{"adopt", 1, 100, (*poolBencher).measureAdoption},
		{"waiting", 1, 2, (*poolBencher).measureQueueWait},
		{"stacked", 1, 2, (*poolBencher).measureStreams},
		{"latency", 2, 16, (*poolBencher).measureLatency},
		{"submit", 2, 16, (*poolBencher).measureSubmits},
		{"queue", 2, 16, (*poolBencher).measureLargeArray},
		{"throughput", 2, 16, (*poolBencher).measureThroughput},
		{"qsub", 1, 1, (*poolBencher).measureQsub},
		{"qstat", 1, 1, (*poolBencher).measureQstat},
		{"restart", 1, 1, (*poolBencher).measureRestart},
		{"poll", 2, 16, (*poolBencher).measurePolling},
		{"array", 1, 1, (*poolBencher).measureArray},
	}
}

func measurementNames() []string {
	var all []string
	for _, m := range measurements() {
		all = append(all, m.name)
	}
	return all
}

func run(ctx context.Context, all *resultList, only string, keepFiles bool) error {
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
	if keepFiles {
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
		if err := runOne(ctx, all, m, roost, filepath.Join(dir, m.name)); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

func runOne(ctx context.Context, all *resultList, m measurementCase, roost, dir string) error {
	b := &poolBencher{ctx: ctx, roost: roost, dir: dir, name: m.name, results: all}
	if m.nodes == 0 {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		return m.run(b)
	}
	pool, err := e2e.Start(ctx, e2e.PoolOptions{Roost: roost, Dir: dir, Nodes: m.nodes, CPUs: m.cpus})
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
