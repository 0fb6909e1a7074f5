package main

import (
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/master"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

const (
	adoptTasks  = 100
	adoptTarget = time.Second
)

// measureAdoption kills the startd of a machine full of tasks several times. It measures
// from the start of the new one until its ad shows that it has adopted them all.
func (b *poolBencher) measureAdoption() error {
	id, err := b.submitJob(newJobSpec(adoptTasks, "/bin/sleep", "1000"))
	if err != nil {
		return err
	}
	if err := b.awaitRunning(id, adoptTasks); err != nil {
		return err
	}
	var took gauge.DurationSamples
	for range 7 {
		if err := sleepFor(b.ctx, 1500); err != nil { // the start time in a daemon's ad is in whole seconds
			return err
		}
		d, err := b.adoptionRound()
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	b.addAimedRow(fmt.Sprintf("a killed startd's %d tasks adopted and advertised", adoptTasks),
		took.Percentile(50) <= adoptTarget, adoptTarget.String(),
		"p50 %v  max %v", took.Percentile(50), took.Percentile(100))
	if err := b.awaitRunning(id, adoptTasks); err != nil {
		return err
	}
	_, err = b.pool.Client.Act(b.ctx, &wire.ActRequest{
		Verb: wire.ActRequest_REMOVE, Force: true, Selection: &wire.Selection{Selectors: []string{id}},
	})
	return rpc.FromStatus(err)
}

func (b *poolBencher) adoptionRound() (time.Duration, error) {
	before, err := b.startdPID()
	if err != nil {
		return 0, err
	}
	start, _, err := b.machineAttribute()
	if err != nil {
		return 0, err
	}
	if err := syscall.Kill(before.PID, syscall.SIGKILL); err != nil {
		return 0, err
	}
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		if err := sleepFor(b.ctx, 2); err != nil {
			return 0, err
		}
		again, free, err := b.machineAttribute()
		if err != nil || again == start {
			continue
		}
		if free != 0 {
			return 0, fmt.Errorf("the new startd advertises %v free cores of a full machine", free)
		}
		seen := time.Now()
		now, err := b.startdPID()
		if err != nil {
			return 0, err
		}
		if now.PID == before.PID {
			return 0, errors.New("the master has not written down the new startd")
		}
		return seen.Sub(now.Started), nil
	}
	return 0, fmt.Errorf("startd: %w: not back after 30s", roost.Unavailable)
}

// startdPID returns the state of the pool's only startd.
func (b *poolBencher) startdPID() (master.DaemonState, error) {
	state, err := b.pool.State()
	if err != nil {
		return master.DaemonState{}, err
	}
	for _, p := range state.Daemons {
		if p.Role == "startd" && p.PID != 0 {
			return p, nil
		}
	}
	return master.DaemonState{}, fmt.Errorf("startd: %w: not running", roost.NotFound)
}

// machineAttribute reads when the only machine's startd started, and how many cores are
// free.
func (b *poolBencher) machineAttribute() (started int64, free float64, err error) {
	stream, err := b.pool.Client.Ads(b.ctx,
		&wire.AdQuery{Type: "Machine", Projection: []string{roost.AttrDaemonStart, roost.AttrCpus}})
	if err != nil {
		return 0, 0, rpc.FromStatus(err)
	}
	for found := false; ; found = true {
		reply, err := stream.Recv()
		if err == io.EOF && found {
			return started, free, nil
		}
		if err == io.EOF {
			err = fmt.Errorf("machine: %w", roost.NotFound)
		}
		if err != nil {
			return 0, 0, rpc.FromStatus(err)
		}
		ad, err := classad.Parse(reply.Ad)
		if err != nil {
			return 0, 0, err
		}
		started, _ = ad.Int(roost.AttrDaemonStart)
		free, _ = ad.Real(roost.AttrCpus)
	}
}
