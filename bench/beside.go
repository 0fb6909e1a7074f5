package main

import (
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/roost-batch/roost/bench/gauge"
)

// Who looks at a pool while jobs are submitted to it.
const (
	besideBrowsers        = 50
	besideScripts         = 20
	besideBrowserInterval = 2 * time.Second // between two pages of a browser
	besideScriptInterval  = time.Second     // between two lists of a script
	besideRounds          = 3
	besideJobs            = 2000 // that are held in the queue
	besideTarget          = 1.1  // of the time with nobody beside
)

// besidePages are what browsers show.
func besidePages(job string) []string {
	return []string{"/", "/jobs?all=1", "/jobs/" + job, "/jobs/" + job + "/tasks", "/nodes", "/shares", "/cell",
		"/usage", "/manual/qsub.1", "/search?q=bench"}
}

// besideLists are what scripts read.
func besideLists(job string) []string {
	return []string{"/v1/jobs?all=1&limit=100", "/v1/jobs/" + job, "/v1/nodes?limit=100", "/v1/overview"}
}

// besideBencher measures what a schedd's users notice of those beside them.
type besideBencher struct {
	webBencher
	clients []*webClient
	job     string
}

// measureBeside measures submissions and short jobs. It compares those with nobody beside
// with those beside browsers and scripts, and with web daemon and accountant stopped,
// which is worse than dead: who calls them waits. The parts take turns.
func measureBeside(p *poolBencher) (err error) {
	b := besideBencher{webBencher: webBencher{p}}
	if b.clients, err = b.openWebClients(); err != nil {
		return err
	}
	if err := b.fillQueue(0, besideJobs, "-h"); err != nil {
		return err
	}
	if b.job, err = b.submitJob(unmatchableJob(100)); err != nil {
		return err
	}
	var alone, beside, stopped besideTimes
	var reads gauge.DurationSamples
	for range besideRounds {
		if err := alone.add(b.timeJobs()); err != nil {
			return err
		}
		read, err := b.beside(&beside)
		if err != nil {
			return err
		}
		reads = append(reads, read...)
		if err := b.withoutOthers(&stopped); err != nil {
			return err
		}
	}
	b.addRow("submits and runs of /bin/true, nobody beside", "%d of them, submit p50 %v  p99 %v, run p50 %v  p99 %v",
		len(alone.submits), alone.submits.Percentile(50), alone.submits.Percentile(99), alone.runs.Percentile(50),
		alone.runs.Percentile(99))
	b.addBeside(fmt.Sprintf("the same, beside %d browsers and %d scripts", besideBrowsers, besideScripts), &alone,
		&beside)
	b.addRow(" what these read", "%d answers, p50 %v  p99 %v", len(reads), reads.Percentile(50), reads.Percentile(99))
	b.addBeside("the same, web daemon and accountant stopped", &alone, &stopped)
	rss := b.daemonsRSS("web")
	b.addAimedRow("RSS of the web daemon", rss > 0 && rss <= webMemory, fmt.Sprintf("%d MiB", webMemory>>20),
		"%.0f MiB", float64(rss)/(1<<20))
	return nil
}

// addBeside adds the row of a part, whose aim is a p99 of submits near that of alone.
func (b besideBencher) addBeside(what string, alone, part *besideTimes) {
	rise := float64(part.submits.Percentile(99)) / float64(alone.submits.Percentile(99))
	runs := float64(part.runs.Percentile(50)) / float64(alone.runs.Percentile(50))
	b.addAimedRow(what, rise <= besideTarget, fmt.Sprintf("%.0f %% more at p99", 100*(besideTarget-1)),
		"%d of them, submit p50 %v  p99 %v, p99 %.2f times as long; run p50 %v  p99 %v, p50 %.2f times as long",
		len(part.submits), part.submits.Percentile(50), part.submits.Percentile(99), rise, part.runs.Percentile(50),
		part.runs.Percentile(99), runs)
}

// besideTimes is how long submits took, and how long it was from them to the end of jobs.
type besideTimes struct{ submits, runs gauge.DurationSamples }

func (t *besideTimes) add(more besideTimes, err error) error {
	t.submits, t.runs = append(t.submits, more.submits...), append(t.runs, more.runs...)
	return err
}

// timeJobs submits one job after the other for a while, each when the one before is over.
func (b besideBencher) timeJobs() (t besideTimes, err error) {
	for began := time.Now(); time.Since(began) < b.span; {
		submitted := time.Now()
		id, err := b.submitJob(newJobSpec(1, "/bin/true"))
		if err != nil {
			return t, err
		}
		t.submits = append(t.submits, time.Since(submitted))
		if err := b.awaitFinal(id); err != nil {
			return t, err
		}
		t.runs = append(t.runs, time.Since(submitted))
	}
	return t, nil
}

// beside times jobs beside browsers and scripts, and returns how long these waited.
func (b besideBencher) beside(t *besideTimes) (reads gauge.DurationSamples, err error) {
	browsers := startWebReaders(b.ctx, b.clients, besidePages(b.job), besideBrowsers, besideBrowserInterval)
	scripts := startWebReaders(b.ctx, b.clients, besideLists(b.job), besideScripts, besideScriptInterval)
	err = t.add(b.timeJobs())
	for _, g := range []*webReaderGroup{browsers, scripts} {
		read, rerr := g.stop()
		reads, err = append(reads, read...), errors.Join(err, rerr)
	}
	return reads, err
}

// withoutOthers times jobs while the web daemon and the accountant are stopped.
func (b besideBencher) withoutOthers(t *besideTimes) (err error) {
	var pids []int
	for _, p := range gauge.ListProcesses() {
		if p.IsBelow(b.pool.Dir) && (p.IsDaemon("web") || p.IsDaemon("accountant")) {
			pids = append(pids, p.PID)
		}
	}
	if len(pids) != 2 {
		return fmt.Errorf("the pool has %d web daemons and accountants, and 2 were to be stopped", len(pids))
	}
	defer func() {
		for _, pid := range pids {
			err = errors.Join(err, syscall.Kill(pid, syscall.SIGCONT))
		}
	}()
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return err
		}
	}
	return t.add(b.timeJobs())
}
