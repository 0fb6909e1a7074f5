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

// measureQueueWait runs a row of short tasks with and without a node queue, by turns. The
// queue has a place for each running task (HRM section 3.4).
func (b *poolBencher) measureQueueWait() error {
	const tasks = 400
	var took [2]gauge.DurationSamples
	for range 5 {
		for on, block := range []string{"", "queue {\n    length = 2\n  }\n"} {
			if err := b.restartStartd(block); err != nil {
				return err
			}
			began := time.Now()
			id, err := b.submitJob(newJobSpec(tasks, "/bin/sleep", "0.01"))
			if err == nil {
				err = b.awaitFinal(id)
			}
			if err != nil {
				return err
			}
			took[on] = append(took[on], time.Since(began))
		}
	}
	off, on := took[0].Percentile(50), took[1].Percentile(50)
	b.addRow(fmt.Sprintf("%d tasks of 10 ms on 2 cores, none waits there", tasks), "p50 %v", off)
	b.addRow("the same, 2 may wait on the machine", "p50 %v, %.2f of that", on, float64(on)/float64(off))
	return nil
}

// restartStartd gives the only startd another block in its part of the node file, and
// waits until it runs again.
func (b *poolBencher) restartStartd(block string) error {
	state, err := b.pool.State()
	if err != nil {
		return err
	}
	before, err := b.startdPID()
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
	if err := sleepFor(b.ctx, 1500); err != nil { // the start time in a daemon's ad is in whole seconds
		return err
	}
	start, _, err := b.machineAttribute()
	if err != nil {
		return err
	}
	if err := syscall.Kill(before.PID, syscall.SIGTERM); err != nil {
		return err
	}
	return b.awaitOutput("the startd is back", func() bool {
		again, _, err := b.machineAttribute()
		return err == nil && again != start
	})
}

func (b *poolBencher) awaitOutput(what string, is func() bool) error {
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		if is() {
			return nil
		}
		if err := sleepFor(b.ctx, 5); err != nil {
			return err
		}
	}
	return fmt.Errorf("%s: %w: not within 30s", what, roost.Unavailable)
}

// measureStreams measures tasks of class stream (HRM section 3.3). The machine is idle,
// or batch tasks use all its cores. It measures until they start, and until they have
// done a piece of work.
func (b *poolBencher) measureStreams() error {
	fifo := filepath.Join(b.pool.Dir, "started")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		return err
	}
	idle, err := b.runStreams(fifo)
	if err != nil {
		return err
	}
	id, err := b.submitJob(newJobSpec(b.pool.CPUs, "/bin/sh", "-c", "while :; do :; done"))
	if err != nil {
		return err
	}
	if err := b.awaitRunning(id, uint32(b.pool.CPUs)); err != nil {
		return err
	}
	full, err := b.runStreams(fifo)
	if err != nil {
		return err
	}
	for i, what := range []string{"a stream task, submit to start", "a stream task, submit to the end of its work"} {
		b.addRow(what+", idle machine", "p50 %v  p99 %v", idle[i].Percentile(50), idle[i].Percentile(99))
		b.addRow(what+", batch on all cores", "p50 %v  p99 %v, %.2f of that", full[i].Percentile(50),
			full[i].Percentile(99), float64(full[i].Percentile(50))/float64(idle[i].Percentile(50)))
	}
	_, err = b.pool.Client.Act(b.ctx, &wire.ActRequest{
		Verb: wire.ActRequest_REMOVE, Force: true, Selection: &wire.Selection{Selectors: []string{id}},
	})
	return rpc.FromStatus(err)
}

// runStreams runs one stream task after another. It returns how long each took to its
// first byte, and to its end.
func (b *poolBencher) runStreams(fifo string) (took [2]gauge.DurationSamples, err error) {
	spec := newJobSpec(1, "/bin/sh", "-c", "echo started; exec awk 'BEGIN { for (i = 0; i < 200000; i++) n += i }'")
	ad, err := classad.Parse(spec.Ad)
	if err != nil {
		return took, err
	}
	ad.SetString(roost.AttrOut, fifo)
	ad.SetString(roost.AttrAppClass, roost.AppStream)
	spec.Ad = ad.String()
	for range 40 {
		began := time.Now()
		d, id, err := b.startOne(fifo, func() (string, error) { return b.submitJob(spec) })
		if err == nil {
			err = b.awaitFinal(id)
		}
		if err != nil {
			return took, err
		}
		took[0], took[1] = append(took[0], d), append(took[1], time.Since(began))
		if err := sleepFor(b.ctx, 50); err != nil {
			return took, err
		}
	}
	return took, nil
}
