package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// waiting runs a row of short tasks on a machine where none may wait, and where one may for each that runs (HRM section 3.4), by turns.
func (b *bencher) waiting() error {
	const tasks = 400
	var took [2]gauge.Samples
	for range 5 {
		for on, block := range []string{"", "queue {\n    length = 2\n  }\n"} {
			if err := b.restart(block); err != nil {
				return err
			}
			began := time.Now()
			id, err := b.submit(job(tasks, "/bin/sleep", "0.01"))
			if err == nil {
				err = b.await(id)
			}
			if err != nil {
				return err
			}
			took[on] = append(took[on], time.Since(began))
		}
	}
	off, on := took[0].At(50), took[1].At(50)
	b.row(fmt.Sprintf("%d tasks of 10 ms on 2 cores, none waits there", tasks), "p50 %v", off)
	b.row("the same, 2 may wait on the machine", "p50 %v, %.2f of that", on, float64(on)/float64(off))
	return nil
}

// restart gives the only startd another block in its part of the node file, and waits until it is there again.
func (b *bencher) restart(block string) error {
	state, err := b.pool.State()
	if err != nil {
		return err
	}
	before, err := b.startd()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(state.Config)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(text), "\nstartd ")
	if !ok {
		return fmt.Errorf("%s: %w: no startd", state.Config, roost.NotFound)
	}
	name, _, _ := strings.Cut(rest, "{")
	own := fmt.Sprintf("\nstartd %s{\n  cpus = %d\n  allow_root = true\n  %s}\n", name, b.pool.CPUs, block)
	if err := os.WriteFile(state.Config, []byte(head+own), 0o600); err != nil {
		return err
	}
	if err := pause(b.ctx, 1500); err != nil { // the start of a daemon stands in its ad in seconds
		return err
	}
	start, _, err := b.machine()
	if err != nil {
		return err
	}
	if err := syscall.Kill(before.PID, syscall.SIGTERM); err != nil {
		return err
	}
	return b.until("the startd is back", func() bool {
		again, _, err := b.machine()
		return err == nil && again != start
	})
}

func (b *bencher) until(what string, is func() bool) error {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if is() {
			return nil
		}
		if err := pause(b.ctx, 5); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w: not within 30s", what, roost.Unavailable)
}

// stacked measures tasks of class stream on a machine that is idle, and on the same machine while batch tasks use all its cores (HRM section
// 3.3): until they start, and until they have done a piece of work.
func (b *bencher) stacked() error {
	fifo := filepath.Join(b.pool.Dir, "started")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		return err
	}
	idle, err := b.streams(fifo)
	if err != nil {
		return err
	}
	id, err := b.submit(job(b.pool.CPUs, "/bin/sh", "-c", "while :; do :; done"))
	if err != nil {
		return err
	}
	if err := b.awaitRunning(id, uint32(b.pool.CPUs)); err != nil {
		return err
	}
	full, err := b.streams(fifo)
	if err != nil {
		return err
	}
	for i, what := range []string{"a stream task, submit to start", "a stream task, submit to the end of its work"} {
		b.row(what+", idle machine", "p50 %v  p99 %v", idle[i].At(50), idle[i].At(99))
		b.row(what+", batch on all cores", "p50 %v  p99 %v, %.2f of that", full[i].At(50), full[i].At(99), float64(full[i].At(50))/float64(idle[i].At(50)))
	}
	_, err = b.pool.Client.Act(b.ctx, &wire.ActRequest{
		Verb: wire.ActRequest_REMOVE, Force: true, Selection: &wire.Selection{Selectors: []string{id}},
	})
	return rpc.FromStatus(err)
}

// streams runs one stream task after another, and returns how long each took to its first byte, and to its end.
func (b *bencher) streams(fifo string) (took [2]gauge.Samples, err error) {
	spec := job(1, "/bin/sh", "-c", "echo started; exec awk 'BEGIN { for (i = 0; i < 200000; i++) n += i }'")
	ad, err := classad.Parse(spec.Ad)
	if err != nil {
		return took, err
	}
	ad.SetString(roost.AttrOut, fifo)
	ad.SetString(roost.AttrAppClass, roost.AppStream)
	spec.Ad = ad.String()
	for range 40 {
		began := time.Now()
		d, id, err := b.startOne(fifo, func() (string, error) { return b.submit(spec) })
		if err == nil {
			err = b.await(id)
		}
		if err != nil {
			return took, err
		}
		took[0], took[1] = append(took[0], d), append(took[1], time.Since(began))
		if err := pause(b.ctx, 50); err != nil {
			return took, err
		}
	}
	return took, nil
}
