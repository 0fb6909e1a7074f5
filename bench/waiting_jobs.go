package main

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

const (
	whyMachines      = 10_000
	otherWaitingJobs = 200 // jobs that wait beside the measured ones, each of a kind of its own
	whyTarget        = 300 * time.Millisecond
	whyRuns          = 30
)

// waitingJob is a job that waits, and why.
type waitingJob struct {
	description  string
	count        int
	cpus         int64
	gang         int64
	requirements string
	taskIndex    string // index of the task to explain
}

func waitingJobs() []waitingJob {
	return []waitingJob{
		{description: "all machines are full", count: 1, cpus: 4},
		{description: "one task of an array of 10,000", count: 10_000, cpus: 3, taskIndex: "[7]"},
		{description: "no machine is that large", count: 1, cpus: 64},
		{description: "its conditions exclude each other", count: 1, cpus: 4,
			requirements: `TARGET.Generation >= 7 && TARGET.Generation < 3 && TARGET.Arch == "X86_64" && TARGET.HasMatlab`},
		{description: "its conditions are costly", count: 1, cpus: 4,
			requirements: `regexp("^node00[0-4]", TARGET.Name) && stringListMember("fast", TARGET.Tags) && (TARGET.Generation == 3 || TARGET.Rack =!= "r7") && TARGET.TotalMemory >= 65536`},
		{description: "512 tasks that start together", count: 512, cpus: 8, gang: 512},
	}
}

func (p *waitingJob) jobSpec() (*wire.JobSpec, error) {
	spec := newJobSpec(p.count, "/bin/true")
	ad, err := classad.Parse(spec.Ad)
	if err != nil {
		return nil, err
	}
	ad.SetInt(roost.AttrRequestCpus, p.cpus)
	ad.SetInt(roost.AttrWalltime, 3600)
	if p.gang > 0 {
		ad.SetInt(roost.AttrGangSize, p.gang)
	}
	if p.requirements != "" {
		if err := ad.SetExpr(roost.AttrRequirements, p.requirements); err != nil {
			return nil, err
		}
	}
	spec.Ad = ad.String()
	return spec, nil
}

// measureWhy measures the command roost why as a whole process, in a cell of 10,000 full
// machines that send updates. It explains jobs that wait for several reasons, while many
// others wait.
func (b *poolBencher) measureWhy() (err error) {
	cell, err := b.advertiseFakes(whyMachines)
	if err != nil {
		return err
	}
	defer func() {
		if serr := cell.stopUpdates(); err == nil {
			err = serr
		}
	}()
	all := waitingJobs()
	ids, err := b.submitWaitingJobs(all)
	if err != nil {
		return err
	}
	known := fmt.Sprintf("Of %d machines", whyMachines+b.pool.Nodes)
	err = b.awaitOutput("the negotiator knows all machines", func() bool {
		out, _, _ := b.pool.Command(b.ctx, "why", ids[0])
		return strings.Contains(out, known)
	})
	if err != nil {
		return err
	}
	for i, p := range all {
		var took gauge.DurationSamples
		for range whyRuns {
			began := time.Now()
			out, errs, code := b.pool.Command(b.ctx, "why", ids[i]+p.taskIndex)
			took = append(took, time.Since(began))
			if code != 0 || !strings.Contains(out, known) {
				return fmt.Errorf("roost why %s: exit %d: %s%s", ids[i]+p.taskIndex, code, out, errs)
			}
			if err := sleepFor(b.ctx, 20+rand.IntN(100)); err != nil {
				return err
			}
		}
		b.addAimedRow(fmt.Sprintf("roost why, %d machines: %s", whyMachines, p.description),
			took.Percentile(100) <= whyTarget, whyTarget.String(), "p50 %v  max %v of %d", took.Percentile(50),
			took.Percentile(100), whyRuns)
	}
	return nil
}

// submitWaitingJobs submits the jobs to explain, and others that wait beside them.
func (b *poolBencher) submitWaitingJobs(all []waitingJob) ([]string, error) {
	for i := range otherWaitingJobs {
		all = append(all, waitingJob{
			count: 100, cpus: int64(i%12 + 3),
			requirements: fmt.Sprintf(`TARGET.Generation >= %d && TARGET.Rack =!= "r%d"`, i%9, i%37),
		})
	}
	request := &wire.SubmitRequest{Key: strconv.FormatUint(rand.Uint64(), 36)}
	for i := range all {
		spec, err := all[i].jobSpec()
		if err != nil {
			return nil, err
		}
		request.Jobs = append(request.Jobs, spec)
	}
	reply, err := wire.SendSubmission(b.ctx, b.pool.Client, request)
	if err != nil {
		return nil, rpc.FromStatus(err)
	}
	return reply.GetIds(), nil
}
