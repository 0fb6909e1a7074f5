package fuzz

import (
	"fmt"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/sim/audit"
	"github.com/roost-batch/roost/internal/sim/faults"
	"github.com/roost-batch/roost/internal/sim/pool"
)

// CaseService is what a job of a case has that is a service. Its attempts run until they
// are ended, but for the first ones of each task.
type CaseService struct {
	MaxDown   int // tasks that an update may have down at once
	Restarts  int // the most restarts on one claim
	EarlyEnds int // attempts of each task that end by themselves, after the job's Length
	Settling  time.Duration
	Progress  time.Duration
	OnFailure string
}

// serviceStream seeds a separate stream for services. What else a seed draws is the same
// with and without them.
const serviceStream = 0x73657276

// firstServiceNumber is the number of a case's first service, which is above those of its
// jobs.
const firstServiceNumber = 1000

// Bounds on services. Their times are short, so that everything happens within a run.
const (
	maxServices     = 2
	maxServiceTasks = 4
	maxSettling     = 5 * time.Second
	minProgress     = 40 * time.Second
	maxProgress     = 80 * time.Second
	firstBackoff    = time.Second
	maxBackoff      = 20 * time.Second
	// how long after the faults their users remove them; by then every update has ended
	serviceTime = 10 * time.Minute
)

// drawServices draws the services of a case, which every third has.
func (c *PoolCase) drawServices(r *faults.SeededRand) {
	if !r.OneIn(3) {
		return
	}
	for i := range r.Between(1, maxServices) {
		c.Jobs = append(c.Jobs, c.drawService(r.Split(), firstServiceNumber+i))
	}
}

// drawService draws a service whose tasks some machine can run.
func (c *PoolCase) drawService(r *faults.SeededRand, number int) CaseJob {
	most := 0
	for i := range c.Machines {
		most = max(most, c.Machines[i].Cores)
	}
	j := CaseJob{
		Number: number, At: r.Duration(c.FaultsEnd / 4), Schedd: r.Intn(c.Schedds), User: r.Intn(3),
		Tasks: r.Between(1, maxServiceTasks), Cores: r.Between(1, min(most, 2)),
		Length: r.SkewedDuration(minTask, maxTask/4), Lease: r.SkewedDuration(minLease, maxLease).Truncate(time.Second),
	}
	s := &CaseService{MaxDown: r.Between(1, j.Tasks), Restarts: r.Between(1, 4),
		Settling: r.SkewedDuration(time.Second, maxSettling).Truncate(time.Second),
		Progress: r.SkewedDuration(minProgress, maxProgress).Truncate(time.Second), OnFailure: "undo"}
	if r.OneIn(2) {
		s.EarlyEnds = r.Between(1, 8)
	}
	if r.OneIn(4) {
		s.OnFailure = "pause"
	}
	j.Service = s
	if r.OneIn(4) {
		j.Actions = drawActions(r, c.FaultsEnd-j.At)
	}
	revision := 1
	for r.OneIn(2) || revision == 1 && r.OneIn(2) {
		revision++
		after := r.SkewedDuration(10*time.Millisecond, c.FaultsEnd-j.At)
		j.Actions = append(j.Actions, UserAction{Delay: after, Verb: Update, Revision: revision})
		if r.OneIn(3) {
			verb := PauseUpdate + ActionVerb(r.Intn(3))
			after += r.SkewedDuration(time.Millisecond, maxTask)
			j.Actions = append(j.Actions, UserAction{Delay: after, Verb: verb})
		}
	}
	j.Actions = append(j.Actions, UserAction{Delay: c.FaultsEnd + serviceTime - j.At, Verb: Remove})
	return j
}

// environmentText is the environment of a revision of a service.
func environmentText(revision int) string { return "REVISION=" + strconv.Itoa(revision) }

// addTo completes the job in the form of package pool.
func (s *CaseService) addTo(j *pool.JobConfig) {
	service, update := classad.New(), classad.New()
	service.SetInt(roost.AttrRestarts, int64(s.Restarts))
	service.SetReal(roost.AttrBackoffFirst, firstBackoff.Seconds())
	service.SetReal(roost.AttrBackoffMax, maxBackoff.Seconds())
	update.SetString(roost.AttrAtOnce, strconv.Itoa(max(j.Spec.Count, 1)))
	update.SetString(roost.AttrMaxDown, strconv.Itoa(s.MaxDown))
	update.SetReal(roost.AttrSettling, s.Settling.Seconds())
	update.SetReal(roost.AttrReadyWithin, s.Progress.Seconds()/2)
	update.SetReal(roost.AttrProgress, s.Progress.Seconds())
	update.SetString(roost.AttrOnFailure, s.OnFailure)
	ad := j.Spec.Ad
	ad.SetAd(roost.AttrService, service)
	ad.SetAd(roost.AttrUpdate, update)
	ad.SetStrings(roost.AttrEnvironment, []string{environmentText(1)})
	ad.SetString(roost.AttrAppClass, roost.AppBatch) // P5 is about one account of cores
	ad.Delete(roost.AttrMaxRetries)
	j.EarlyEnds = s.EarlyEnds
	j.Service = &audit.ServiceTerms{MaxDown: s.MaxDown, Restarts: s.Restarts, BackoffFirst: firstBackoff,
		BackoffMax: maxBackoff, Progress: s.Progress, Environment: environmentText(1)}
}

// text describes the service as a part of what its user submits.
func (s *CaseService) text() string {
	text := fmt.Sprintf("; as a service of which %d may be down, with at most %s on a claim; in updates a task "+
		"settles for %v, and without progress for %v they end (%s)", s.MaxDown, countText(s.Restarts, "restart"),
		s.Settling, s.Progress, s.OnFailure)
	if s.EarlyEnds > 0 {
		text += fmt.Sprintf("; the first %s of each task end by themselves", countText(s.EarlyEnds, "attempt"))
	}
	return text
}
