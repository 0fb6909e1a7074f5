package main

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/internal/tasktrace"
	"github.com/roost-batch/roost/schedd/queue"
)

// tracedJob is one job of the waterfall: when its submit began, and its number.
type tracedJob struct {
	begin int64
	seq   uint64
}

// firstByteStage is the stage that this program sees by itself: the job's output arrives.
const firstByteStage = "byte"

// stageLabels returns the stages of a task in the waterfall, with what is printed for
// each.
func stageLabels() map[string]string {
	return map[string]string{
		tasktrace.Received: "received by the schedd", queue.Submitted.String(): "durable, in the job log",
		tasktrace.Requested: "request at the negotiator", tasktrace.Planned: "grant committed",
		tasktrace.Granted: "granted, known to the schedd", tasktrace.Created: "claim made by the startd",
		tasktrace.Spawned: "starter of the claim runs", tasktrace.Claimed: "claimed, known to the schedd",
		queue.Assigned.String(): "attempt in the job log", tasktrace.Activated: "attempt at the startd",
		tasktrace.Prepared: "files and limits made", tasktrace.Forking: "command at the starter",
		tasktrace.Forked: "forked", tasktrace.Boxed: "boxed, the program begins", firstByteStage: "first byte",
		queue.Started.String(): "start in the job log", tasktrace.Exited: "exit of the program",
		tasktrace.Reaped: "exit in the starter's journal", tasktrace.Reported: "exit known to the startd",
		tasktrace.Returned: "exit known to the schedd", queue.Ended.String(): "recorded, in the job log",
		queue.Purged.String(): "archived and purged",
	}
}

// measureWaterfall runs single jobs on an idle pool whose daemons trace them. It prints
// when a job passes each stage of its life.
func (b *poolBencher) measureWaterfall() error {
	fifo, spec, err := newFifoJob(b.pool.Dir)
	if err != nil {
		return err
	}
	var jobs, commands []tracedJob
	var bytes []tasktrace.StageRecord
	for n := range 260 {
		call := func() (string, error) { return b.submitJob(spec) }
		if n >= 200 {
			call = func() (string, error) {
				out, errs, code := b.pool.Command(b.ctx, "qsub", "-o", fifo, "-e", "/dev/null", "--", "/bin/echo",
					"started")
				if code != 0 {
					return "", fmt.Errorf("qsub: %s", errs)
				}
				return strings.TrimSpace(out), nil
			}
		}
		job := tracedJob{begin: tasktrace.Now()}
		d, id, err := b.startOne(fifo, call)
		if err == nil {
			err = b.awaitFinal(id)
		}
		if err != nil {
			return err
		}
		parsed, err := roost.ParseJobID(id, "")
		if err != nil {
			return err
		}
		job.seq = parsed.Seq
		if n < 200 {
			jobs = append(jobs, job)
		} else {
			commands = append(commands, job)
		}
		bytes = append(bytes, tasktrace.StageRecord{At: job.begin + int64(d), Stage: firstByteStage,
			Task: tasktrace.Task{Job: job.seq}})
		// longer than an idle claim lives, so that each job needs a new one
		if err := sleepFor(b.ctx, 130+rand.IntN(100)); err != nil {
			return err
		}
	}
	if err := sleepFor(b.ctx, 2500); err != nil { // until the last job is archived
		return err
	}
	text, err := os.ReadFile(b.trace)
	if err != nil {
		return err
	}
	times := stageTimes(append(jobs, commands...), append(tasktrace.Parse(text), bytes...))
	b.addWaterfallRows(times[:len(jobs)])
	var command gauge.DurationSamples
	for _, t := range times[len(jobs):] {
		if at, ok := t[tasktrace.Received]; ok {
			command = append(command, at)
		}
	}
	b.addRow("qsub: from its start to the call at the schedd", "p50 %v  p99 %v of %d", command.Percentile(50),
		command.Percentile(99), len(command))
	return nil
}

// stageTimes returns when each job passed its stages for the first time, from its submit.
// The jobs ran one after the other: a record without a job's number is of the job that
// was submitted last before it.
func stageTimes(jobs []tracedJob, records []tasktrace.StageRecord) []map[string]time.Duration {
	bySeq, times := make(map[uint64]int, len(jobs)), make([]map[string]time.Duration, len(jobs))
	for i, j := range jobs {
		bySeq[j.seq], times[i] = i, map[string]time.Duration{}
	}
	for _, r := range records {
		i, ok := bySeq[r.Task.Job]
		if r.Task.Job == 0 {
			after, _ := slices.BinarySearchFunc(jobs, r.At, func(j tracedJob, at int64) int {
				return cmp.Or(cmp.Compare(j.begin, at), -1)
			})
			i, ok = after-1, after > 0
		}
		if !ok {
			continue
		}
		at := time.Duration(r.At - jobs[i].begin)
		if earlier, passed := times[i][r.Stage]; !passed || at < earlier {
			times[i][r.Stage] = at
		}
	}
	return times
}

// waterfallStage is one line of the waterfall.
type waterfallStage struct {
	name   string
	at     time.Duration         // median, from the submit
	passed gauge.DurationSamples // from the submit
	step   gauge.DurationSamples // from the stage before
}

// waterfallStages returns the stages in the order of their medians. It leaves out a stage
// that fewer than half of the jobs passed.
func waterfallStages(times []map[string]time.Duration) (all []waterfallStage) {
	for name := range stageLabels() {
		s := waterfallStage{name: name}
		for _, t := range times {
			if at, ok := t[name]; ok {
				s.passed = append(s.passed, at)
			}
		}
		if 2*len(s.passed) > len(times) {
			s.at = s.passed.Percentile(50)
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b waterfallStage) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.name, b.name))
	})
	for i := range all {
		for _, t := range times {
			at, ok := t[all[i].name]
			if before := time.Duration(0); ok {
				if i > 0 {
					before = t[all[i-1].name]
				}
				all[i].step = append(all[i].step, at-before)
			}
		}
	}
	return all
}

// addWaterfallRows prints a line for each stage, with a bar from the stage before to this
// one.
func (b *poolBencher) addWaterfallRows(times []map[string]time.Duration) {
	stages := waterfallStages(times)
	var whole, before time.Duration // a job is archived much later, and has no bar
	for _, s := range stages {
		if s.name != queue.Purged.String() {
			whole = max(whole, s.at)
		}
	}
	labels := stageLabels()
	b.addRow("life of one task from its submit, idle pool", "medians of %d; each bar begins at the stage before",
		len(times))
	for _, s := range stages {
		bar := ""
		if s.at <= whole {
			bar = waterfallBar(before, s.at, whole)
		}
		b.addRow("  "+labels[s.name], "%8v  step p50 %8v p99 %8v  %s", s.at, s.step.Percentile(50),
			s.step.Percentile(99), bar)
		before = s.at
	}
}

// waterfallBarWidth is the width of the chart, in columns.
const waterfallBarWidth = 44

// waterfallBar draws the time from one instant to another on a line of the whole.
func waterfallBar(from, to, whole time.Duration) string {
	column := func(at time.Duration) int { return int(at * waterfallBarWidth / max(whole, 1)) }
	first, end := column(from), column(to)
	if end == first {
		return "|" + strings.Repeat(" ", min(first, waterfallBarWidth-1)) + "'"
	}
	return "|" + strings.Repeat(" ", first) + strings.Repeat("=", end-first)
}
