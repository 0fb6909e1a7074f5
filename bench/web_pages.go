package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/bench/gauge"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// The size of the pool behind the web daemon.
const (
	webMachines   = 10_000
	webJobs       = 100_000
	webArrayTasks = 1_000_000
)

// Targets of the web daemon in that pool. Sizes are bytes as they are sent, compressed.
const (
	webListTarget  = 20 * time.Millisecond
	webArrayTarget = 100 * time.Millisecond
	webPageTarget  = 150 * time.Millisecond
	webArrayBytes  = 64 << 10
	webHomeBytes   = 20 << 10
	webMemory      = 150 << 20
	webSamples     = 12
)

// webPage is a page of the web daemon, and its data as JSON.
type webPage struct {
	description string
	page, data  string // paths; "": there is none
	target      time.Duration
	maxBytes    int // 0: not bounded
}

// rareName is in the name of one job, the oldest.
const rareName = "needle"

// webJobIDs are the jobs that the measured pages show.
type webJobIDs struct{ single, waiting, array string }

// webPages returns the measured pages.
func webPages(ids webJobIDs) []webPage {
	both := func(what, path string, target time.Duration) webPage {
		return webPage{description: what, page: path, data: "/v1" + path, target: target}
	}
	home := webPage{"overview", "/", "/v1/overview", webPageTarget, webHomeBytes}
	array := both("job, array of 1,000,000", "/jobs/"+ids.array, webArrayTarget)
	array.maxBytes = webArrayBytes
	return []webPage{
		home,
		both("jobs", "/jobs?all=1", webListTarget),
		both("jobs, 1000 of them", "/jobs?all=1&limit=1000", webPageTarget),
		both("jobs of a rare state", "/jobs?all=1&state=held", webPageTarget),
		both("jobs of a rare owner", "/jobs?all=1&owner="+otherUser, webPageTarget),
		both("jobs of a rare name", "/jobs?all=1&name="+rareName, webPageTarget),
		both("jobs of a rare band", "/jobs?all=1&band=free", webPageTarget),
		both("job", "/jobs/"+ids.single, webPageTarget),
		both("definition of a job", "/jobs/"+ids.single+"/definition", webPageTarget),
		array,
		both("tasks of the array", "/jobs/"+ids.array+"/tasks", webPageTarget),
		both("its last tasks", "/jobs/"+ids.array+fmt.Sprintf("/tasks?from=%d", webArrayTasks-50), webPageTarget),
		both("its one held task", "/jobs/"+ids.array+"/tasks?state=held", webPageTarget),
		both("a task of it", "/tasks/"+strings.Replace(ids.array, ".", "[777777].", 1), webPageTarget),
		both("why", "/jobs/"+ids.waiting+"/why", whyTarget),
		both("why, of the array", "/jobs/"+ids.array+"/why", whyTarget),
		both("nodes", "/nodes", webPageTarget),
		both("nodes by a part of the name", "/nodes?q=node0099", webPageTarget),
		both("node", "/nodes/node000123", webPageTarget),
		both("search of a node", "/search?q=node0099", webPageTarget),
		both("search of a job", "/search?q="+rareName, webPageTarget),
		both("shares", "/shares", webPageTarget),
		both("cell", "/cell", webPageTarget),
		both("manual", "/manual", webPageTarget),
		both("manual, a page", "/manual/qsub.1", webPageTarget),
		both("manual, a search", "/manual?q=checkpoint", webPageTarget),
		{"form of a job", "/submit", "", webPageTarget, 0},
	}
}

// webBencher measures the real web daemon in front of a real pool. The pool has many
// machines that exist only as ads, and many jobs that wait.
type webBencher struct{ *poolBencher }

// measure measures each page and its JSON, how large they are, and what they cost.
func (b webBencher) measure() (err error) {
	cell, err := b.advertiseFakes(webMachines)
	if err != nil {
		return err
	}
	defer func() {
		if serr := cell.stopUpdates(); err == nil {
			err = serr
		}
	}()
	ids, err := b.fillWebQueue()
	if err != nil {
		return err
	}
	clients, err := b.openWebClients()
	if err != nil {
		return err
	}
	known := fmt.Sprintf(`"total":%d,`, webMachines+b.pool.Nodes)
	err = b.awaitOutput("the web daemon knows all machines", func() bool {
		answer, err := clients[0].get(b.ctx, "/v1/nodes?limit=1")
		return err == nil && strings.Contains(string(answer.text), known)
	})
	if err != nil {
		return err
	}
	first, err := clients[0].get(b.ctx, "/v1/jobs?all=1")
	if err != nil {
		return err
	}
	b.addRow("the first list of jobs, of all that came at once", "%v", first.took)
	if err := sleepFor(b.ctx, 1000); err != nil { // the schedd's checkpoint
		return err
	}
	for _, p := range webPages(ids) {
		if err := b.measureWebPage(clients, p); err != nil {
			return err
		}
	}
	if err := b.measureWebReaders(clients, webPages(ids)); err != nil {
		return err
	}
	rss := b.daemonsRSS("web")
	b.addAimedRow("RSS of the web daemon", rss > 0 && rss <= webMemory, fmt.Sprintf("%d MiB", webMemory>>20),
		"%.0f MiB", float64(rss)/(1<<20))
	return nil
}

// fillWebQueue submits the jobs. Those that filters look for are the oldest, so a list
// that begins with the newest finds them last.
func (b webBencher) fillWebQueue() (ids webJobIDs, err error) {
	if os.Geteuid() == 0 {
		if err := b.fillQueueAs(otherUID, 20); err != nil {
			return ids, err
		}
	}
	rare, err := webJob(0, func(ad *classad.Ad) {
		ad.SetString(roost.AttrJobName, "the "+rareName)
		ad.SetString(roost.AttrBand, roost.FreeBand.String())
	})
	if err != nil {
		return ids, err
	}
	if ids.single, err = b.submitJob(rare); err != nil {
		return ids, err
	}
	if err := b.holdTasks(ids.single); err != nil {
		return ids, err
	}
	for from := 1; from < webJobs; from += jobsPerCall {
		request := &wire.SubmitRequest{Key: fmt.Sprintf("web-%d-%d", time.Now().UnixNano(), from)}
		for i := range min(jobsPerCall, webJobs-from) {
			spec, err := webJob(from+i, nil)
			if err != nil {
				return ids, err
			}
			request.Jobs = append(request.Jobs, spec)
		}
		reply, err := wire.SendSubmission(b.ctx, b.pool.Client, request)
		if err != nil {
			return ids, rpc.FromStatus(err)
		}
		ids.waiting = reply.GetIds()[0]
	}
	if ids.array, err = b.submitJob(unmatchableJob(webArrayTasks)); err != nil {
		return ids, err
	}
	ids.array = strings.Replace(ids.array, "[]", "", 1)
	return ids, b.holdTasks(strings.Replace(ids.array, ".", "[999000].", 1))
}

// webJob returns a job that waits, with a name of its own.
func webJob(i int, change func(*classad.Ad)) (*wire.JobSpec, error) {
	spec := unmatchableJob(1)
	ad, err := classad.Parse(spec.Ad)
	if err != nil {
		return nil, err
	}
	ad.SetString(roost.AttrJobName, fmt.Sprintf("simulate-%d", i))
	if change != nil {
		change(ad)
	}
	spec.Ad = ad.String()
	return spec, nil
}

func (b webBencher) holdTasks(selector string) error {
	_, err := b.pool.Client.Act(b.ctx, &wire.ActRequest{Verb: wire.ActRequest_HOLD,
		Selection: &wire.Selection{Selectors: []string{selector}}})
	return rpc.FromStatus(err)
}

// measureWebPage measures a page and its JSON, by turns for each client.
func (b webBencher) measureWebPage(clients []*webClient, p webPage) error {
	for _, path := range []string{p.page, p.data} {
		if path == "" {
			continue
		}
		kind := "page"
		if path == p.data {
			kind = "JSON"
		}
		var took gauge.DurationSamples
		var last webAnswer
		before := b.poolCPUTime()
		for i := range webSamples {
			answer, err := clients[i%len(clients)].get(b.ctx, path)
			if err != nil {
				return err
			}
			took, last = append(took, answer.took), answer
		}
		_, parts := b.poolCPUTime().millisSince(before, webSamples)
		b.addAimedRow(p.description+", "+kind, took.Percentile(99) <= p.target, p.target.String(),
			"p50 %v  p99 %v, %.1f kB sent of %.1f, CPU ms: %s", took.Percentile(50), took.Percentile(99),
			float64(last.sent)/1000, float64(len(last.text))/1000, parts)
		if p.maxBytes > 0 {
			b.addAimedRow(p.description+", "+kind+", size", last.sent <= p.maxBytes,
				fmt.Sprintf("%.1f kB", float64(p.maxBytes)/1000), "%.1f kB", float64(last.sent)/1000)
		}
	}
	return nil
}

// Readers beside submits.
const (
	webReaders      = 20
	webReadInterval = time.Second // of each reader
	webReadRounds   = 3
	commitsPerRound = 80
	webCommitTarget = 1.1 // of the commit's time without readers
)

// measureWebReaders measures how much longer commits take while readers look at pages.
func (b webBencher) measureWebReaders(clients []*webClient, pages []webPage) error {
	var paths []string
	for _, p := range pages {
		if p.target != whyTarget { // each user asks that seldom
			paths = append(paths, p.page)
		}
	}
	paths = slices.DeleteFunc(paths, func(p string) bool { return strings.Contains(p, "limit=1000") })
	var alone, beside, reads gauge.DurationSamples
	for range webReadRounds {
		took, err := b.timeCommits()
		if err != nil {
			return err
		}
		alone = append(alone, took...)
		readers := startWebReaders(b.ctx, clients, paths, webReaders, webReadInterval)
		took, err = b.timeCommits()
		read, rerr := readers.stop()
		if err == nil {
			err = rerr
		}
		if err != nil {
			return err
		}
		beside, reads = append(beside, took...), append(reads, read...)
	}
	b.addRow("submits of one job, nobody reads", "p50 %v  p99 %v", alone.Percentile(50), alone.Percentile(99))
	rise := float64(beside.Percentile(50)) / float64(alone.Percentile(50))
	b.addAimedRow(fmt.Sprintf("the same, %d readers with a page every %v", webReaders, webReadInterval),
		rise <= webCommitTarget, fmt.Sprintf("%.0f %% more", 100*(webCommitTarget-1)),
		"p50 %v  p99 %v, p50 %.2f times as long; %d reads, p50 %v  p99 %v", beside.Percentile(50),
		beside.Percentile(99), rise, len(reads), reads.Percentile(50), reads.Percentile(99))
	return nil
}

// timeCommits submits jobs one after the other.
func (b webBencher) timeCommits() (took gauge.DurationSamples, err error) {
	for range commitsPerRound {
		began := time.Now()
		if _, err := b.submitJob(unmatchableJob(1)); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
		if err := sleepFor(b.ctx, 15); err != nil {
			return nil, err
		}
	}
	return took, nil
}
