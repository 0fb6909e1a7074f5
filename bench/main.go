// Command bench measures a pool of real processes on this machine and prints medians of one run: how soon a job starts, how many finish in a
// second, what a job costs, how fast submits are taken, and how much memory everything needs. Run it with make bench.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/roost-batch/roost/internal/e2e"
)

func main() {
	only := flag.String("only", "", "run only the measurement of this `name`")
	keep := flag.Bool("keep", false, "keep the pool's directory")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *only, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// measurement is one part of the bench, on a fresh pool of its own.
type measurement struct {
	name string
	run  func(*bencher) error
}

func measurements() []measurement {
	return []measurement{
		{"memory", (*bencher).memory},
		{"latency", (*bencher).latency},
		{"submit", (*bencher).submits},
		{"queue", (*bencher).queue},
		{"throughput", (*bencher).throughput},
	}
}

func run(ctx context.Context, only string, keep bool) error {
	dir, err := os.MkdirTemp("", "roost-bench-")
	if err != nil {
		return err
	}
	if keep {
		fmt.Println("directory:", dir)
	} else {
		defer os.RemoveAll(dir)
	}
	roost, err := e2e.Build(ctx, dir)
	if err != nil {
		return err
	}
	for _, m := range measurements() {
		if only != "" && only != m.name {
			continue
		}
		if err := runOne(ctx, m, roost, filepath.Join(dir, m.name)); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

func runOne(ctx context.Context, m measurement, roost, dir string) error {
	pool, err := e2e.Start(ctx, e2e.Options{Roost: roost, Dir: dir, Nodes: 2, CPUs: 16})
	if err != nil {
		return err
	}
	err = m.run(&bencher{ctx: ctx, pool: pool})
	if serr := pool.Stop(); err == nil {
		err = serr
	}
	return err
}
