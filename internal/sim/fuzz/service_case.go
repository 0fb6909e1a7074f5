package fuzz

import (
	"fmt"
	"slices"
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
	Surge     int // tasks beyond its own that an update may add
	Disrupt   int // running tasks that one update may stop; 0: any number
	MemoryUse int // GiB that each task uses
	MaxTasks  int // its number of tasks follows its load up to this one; 0: it does not
	MaxMemory int // GiB up to which the memory of each task follows its use; 0: it does not
	Restarts  int // the most restarts on one claim
	EarlyEnds int // attempts of each task that end by themselves, after the job's Length
	Settling  time.Duration
	Progress  time.Duration
	OnFailure string
	Overlap   bool // a next attempt of a task may begin while one lives on a silent machine
	// above 0: it has a check, and a task that is ready stays so for this long at most
	// while there are faults
	Ready time.Duration
}

// serviceStream seeds a separate stream for services. What else a seed draws is the same
// with and without them.
const serviceStream = 0x73657276

// checkStream seeds a separate stream for the checks of services.
const checkStream = 0x636865636b

// surgeStream seeds a separate stream for tasks beyond those of a service.
const surgeStream = 0x7375726765

// disruptStream seeds a separate stream for bounds on what an update may stop.
const disruptStream = 0x6469737275

// resizeStream seeds a separate stream for services that become larger and smaller.
const resizeStream = 0x726573697a65

// loadStream seeds a separate stream for services whose number of tasks follows their
// load.
const loadStream = 0x6c6f6164

// sizeStream seeds a separate stream for services whose size follows their use.
const sizeStream = 0x73697a65

// overlapStream seeds a separate stream for services of which two attempts may live at
// once.
const overlapStream = 0x6f7665726c

// firstServiceNumber is the number of a case's first service, which is above those of its
// jobs.
const firstServiceNumber = 1000

// Bounds on services. Their times are short, so that everything happens within a run.
const (
	maxServices     = 2
	maxResizes      = 3
	maxServiceTasks = 4
	maxSettling     = 5 * time.Second
	minProgress     = 40 * time.Second
	maxProgress     = 80 * time.Second
	minReady        = 100 * time.Millisecond
	maxReady        = 2 * time.Minute
	maxUnready      = 3 * time.Second // until the next change of a task that is not ready
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
	if checks := faults.NewRand(c.Seed ^ checkStream ^ uint64(number)); checks.OneIn(2) {
		s.Ready = checks.SkewedDuration(minReady, maxReady)
	}
	if surge := faults.NewRand(c.Seed ^ surgeStream ^ uint64(number)); surge.OneIn(2) {
		s.Surge = surge.Between(1, j.Tasks)
		if surge.OneIn(2) {
			s.MaxDown = 0
		}
	}
	if bound := faults.NewRand(c.Seed ^ disruptStream ^ uint64(number)); bound.OneIn(3) {
		s.Disrupt = bound.Between(1, j.Tasks)
	}
	if load := faults.NewRand(c.Seed ^ loadStream ^ uint64(number)); load.OneIn(3) {
		s.MaxTasks = load.Between(j.Tasks, maxServiceTasks+2)
	}
	s.Overlap = faults.NewRand(c.Seed ^ overlapStream ^ uint64(number)).OneIn(3)
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
	c.drawResizes(&j, most)
	sizes := faults.NewRand(c.Seed ^ sizeStream ^ uint64(number))
	if s.MaxTasks == 0 && !j.isResized() && sizes.OneIn(3) {
		s.MaxMemory = sizes.Between(j.Cores, 2*most)
	}
	j.Actions = append(j.Actions, UserAction{Delay: c.FaultsEnd + serviceTime - j.At, Verb: Remove})
	return j
}

// drawResizes draws changes of the size of every third service. Some machine can run each
// size.
func (c *PoolCase) drawResizes(j *CaseJob, mostCores int) {
	r := faults.NewRand(c.Seed ^ resizeStream ^ uint64(j.Number))
	if !r.OneIn(3) {
		return
	}
	j.Service.MemoryUse = r.Between(0, j.Cores)
	for range r.Between(1, maxResizes) {
		cores := r.Between(1, mostCores)
		j.Actions = append(j.Actions, UserAction{Delay: r.SkewedDuration(10*time.Millisecond, c.FaultsEnd-j.At),
			Verb: Resize, Cores: cores, Memory: r.Between(1, 2*mostCores)})
	}
}

// isResized reports whether the user of a job changes the size of its tasks.
func (j *CaseJob) isResized() bool {
	return slices.ContainsFunc(j.Actions, func(a UserAction) bool { return a.Verb == Resize })
}

// environmentText is the environment of a revision of a service.
func environmentText(revision int) string { return "REVISION=" + strconv.Itoa(revision) }

// addTo completes the job in the form of package pool.
func (s *CaseService) addTo(j *pool.JobConfig, faultsEnd time.Duration) {
	service, update := classad.New(), classad.New()
	service.SetInt(roost.AttrRestarts, int64(s.Restarts))
	if s.Overlap {
		service.SetBool(roost.AttrOverlap, true)
	}
	service.SetReal(roost.AttrBackoffFirst, firstBackoff.Seconds())
	service.SetReal(roost.AttrBackoffMax, maxBackoff.Seconds())
	update.SetString(roost.AttrAtOnce, strconv.Itoa(max(j.Spec.Count, 1)))
	update.SetString(roost.AttrMaxDown, strconv.Itoa(s.MaxDown))
	update.SetString(roost.AttrSurge, strconv.Itoa(min(s.Surge, j.Spec.Count)))
	if s.Disrupt > 0 {
		update.SetInt(roost.AttrDisruptions, int64(s.Disrupt))
	}
	update.SetReal(roost.AttrSettling, s.Settling.Seconds())
	update.SetReal(roost.AttrReadyWithin, s.Progress.Seconds()/2)
	update.SetReal(roost.AttrProgress, s.Progress.Seconds())
	update.SetString(roost.AttrOnFailure, s.OnFailure)
	ad := j.Spec.Ad
	if s.Ready > 0 {
		check := classad.New()
		check.SetString(roost.AttrName, pool.CheckName)
		check.SetString(roost.AttrCheckKind, "exec")
		check.SetString(roost.AttrCheckFor, roost.CheckForLive)
		check.SetStrings(roost.AttrCheckCommand, []string{"/bin/true"})
		ad.SetValue(roost.AttrChecks, classad.ListValue(classad.AdOf(check)))
		j.Health = &pool.HealthModel{Change: maxUnready, Ready: s.Ready, Until: faultsEnd}
	}
	if s.MaxTasks > 0 {
		s.addScaling(j, faultsEnd)
	}
	if s.MaxMemory > 0 {
		s.addSizing(j, faultsEnd)
	}
	ad.SetAd(roost.AttrService, service)
	ad.SetAd(roost.AttrUpdate, update)
	ad.SetStrings(roost.AttrEnvironment, []string{environmentText(1)})
	ad.SetString(roost.AttrAppClass, roost.AppBatch) // P5 is about one account of cores
	ad.Delete(roost.AttrMaxRetries)
	j.EarlyEnds, j.MemoryUse = s.EarlyEnds, roost.Bytes(s.MemoryUse)*roost.GiB
	j.Service = &audit.ServiceTerms{MaxDown: s.MaxDown, Surge: s.Surge, Restarts: s.Restarts,
		BackoffFirst: firstBackoff, BackoffMax: maxBackoff, Progress: s.Progress, Disruptions: s.Disrupt,
		Environment: environmentText(1), MaxTasks: s.MaxTasks, Overlap: s.Overlap}
	if s.MaxTasks > 0 {
		j.Service.MinTasks = s.minTasks()
	}
	if s.MaxMemory > 0 {
		j.Service.MinMemory, j.Service.MaxMemory = minSizeMemory, roost.Bytes(s.MaxMemory)*roost.GiB
	}
}

// minTasks is the least number of tasks. An update adds at most as many again.
func (s *CaseService) minTasks() int { return max(s.Surge, 1) }

// scaleTarget is the part of its memory that a task is to use.
const scaleTarget = 0.5

// addScaling has the number of tasks follow the load. Its windows are short, so that it
// grows and shrinks within a run.
func (s *CaseService) addScaling(j *pool.JobConfig, faultsEnd time.Duration) {
	scale := classad.New()
	scale.SetInt(roost.AttrScaleMin, int64(s.minTasks()))
	scale.SetInt(roost.AttrScaleMax, int64(s.MaxTasks))
	scale.SetReal(roost.AttrScaleMemory, scaleTarget)
	scale.SetReal(roost.AttrScaleEvery, 1)
	scale.SetReal(roost.AttrScalePeriod, 2)
	scale.SetReal(roost.AttrDownWindow, 4)
	j.Spec.Ad.SetAd(roost.AttrAutoscale, scale)
	j.Load = &pool.LoadModel{Every: time.Second, Target: scaleTarget, Silent: 5, Wrong: 6, Until: faultsEnd}
}

// minSizeMemory is the least memory of a task whose size follows its use.
const minSizeMemory = 256 * roost.MiB

// addSizing has the memory of tasks follow their use. Few reports are wrong, because one
// counts for the whole window.
func (s *CaseService) addSizing(j *pool.JobConfig, faultsEnd time.Duration) {
	sizes := classad.New()
	sizes.SetInt(roost.AttrMinMemory, int64(minSizeMemory/roost.MiB))
	sizes.SetInt(roost.AttrMaxMemory, int64(roost.Bytes(s.MaxMemory)*roost.GiB/roost.MiB))
	sizes.SetReal(roost.AttrSizeWindow, (2 * time.Minute).Seconds())
	sizes.SetReal(roost.AttrScaleEvery, 5)
	j.Spec.Ad.SetAd(roost.AttrVerticalAutoscale, sizes)
	j.Load = &pool.LoadModel{Every: time.Second, Target: scaleTarget, Silent: 5, Wrong: 500, Until: faultsEnd}
}

// text describes the service as a part of what its user submits.
func (s *CaseService) text() string {
	text := fmt.Sprintf("; as a service of which %d may be down and %d more run, with at most %s on a claim; in "+
		"updates a task settles for %v, and without progress for %v they end (%s)", s.MaxDown, s.Surge,
		countText(s.Restarts, "restart"), s.Settling, s.Progress, s.OnFailure)
	if s.MaxTasks > 0 {
		text += fmt.Sprintf("; its number of tasks follows its load, from %d to %d", s.minTasks(), s.MaxTasks)
	}
	if s.MaxMemory > 0 {
		text += fmt.Sprintf("; the memory of each task follows its use, from %v to %d GiB", minSizeMemory, s.MaxMemory)
	}
	if s.Overlap {
		text += "; two attempts of a task may live at once while a machine is silent"
	}
	if s.Disrupt > 0 {
		text += fmt.Sprintf("; an update stops at most %s that run", countText(s.Disrupt, "task"))
	}
	if s.MemoryUse > 0 {
		text += fmt.Sprintf("; each task uses %d GiB of memory", s.MemoryUse)
	}
	if s.Ready > 0 {
		text += fmt.Sprintf("; it has a check, which passes for at most %v", s.Ready)
	}
	if s.EarlyEnds > 0 {
		text += fmt.Sprintf("; the first %s of each task end by themselves", countText(s.EarlyEnds, "attempt"))
	}
	return text
}
