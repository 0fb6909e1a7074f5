package document

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/schedd/queue/autoscale"
)

// What is too little to be worth a word, and what can be told from too short a time.
const (
	minMemory       = 1 * roost.GiB // asked for
	minSaving       = 512 * roost.MiB
	minWalltime     = 30 * time.Minute
	minMeasuredTime = 30 * time.Second // of a task, before the cores that it kept busy mean anything
	minSampleTasks  = 5                // with fewer, the next one may well be larger
)

// TaskSample is a task that has succeeded: its request, and how it ended.
type TaskSample struct {
	asked    roost.Resources
	walltime time.Duration // 0: no limit
	end      *scheddapi.ExitStatus
}

// RightSize compares requests of tasks with the highest use among them, and advises what
// to request next time. Only tasks that did their work tell anything: one that failed may
// have ended before it needed most. Where tasks asked for different amounts, nothing can
// be said about that resource in one sentence, and nothing is.
func RightSize(samples []TaskSample) (hints []string) {
	samples = slices.DeleteFunc(slices.Clone(samples), func(s TaskSample) bool {
		return s.end == nil || FailedExit(s.end)
	})
	if len(samples) == 0 {
		return nil
	}
	for _, advise := range []func([]TaskSample) string{memoryHint, coresHint, gpuHint, gpuMemoryHint, walltimeHint} {
		if text := advise(samples); text != "" {
			hints = append(hints, text)
		}
	}
	return hints
}

// TaskSampleOf is the sample of a task that has ended.
func TaskSampleOf(s *scheddapi.JobStatus, walltime time.Duration) TaskSample {
	return TaskSample{asked: s.GetRequest().Vector(), walltime: walltime, end: s.GetExit()}
}

// AdWalltime is the limit that a job's ad sets, 0 for none.
func AdWalltime(text string) time.Duration {
	ad, err := classad.Parse(text)
	if text == "" || err != nil {
		return 0
	}
	seconds, ok := ad.Int(roost.AttrWalltime)
	if !ok || seconds <= 0 || seconds > int64(1<<62/time.Second) {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// withMargin is by how much more than the most that was used should be asked for.
func withMargin(tasks int) float64 {
	if tasks < minSampleTasks {
		return 1.5
	}
	return 1.25
}

// samplesText is where the knowledge comes from.
func samplesText(tasks int) string { return "in " + Plural(tasks, "task") }

// commonValue is the value that all samples have; false where they differ.
func commonValue[T comparable](samples []TaskSample, value func(TaskSample) T) (T, bool) {
	first := value(samples[0])
	return first, !slices.ContainsFunc(samples, func(s TaskSample) bool { return value(s) != first })
}

// highestValue is the highest value of all samples.
func highestValue[T int64 | float64](samples []TaskSample, value func(TaskSample) T) (highest T) {
	for _, s := range samples {
		highest = max(highest, value(s))
	}
	return highest
}

// memoryHint takes the memory of all processes of a task together. Where that was not
// measured, the largest process has to do.
func memoryHint(samples []TaskSample) string {
	asked, same := commonValue(samples, func(s TaskSample) roost.Bytes { return s.asked.Memory })
	peak := roost.Bytes(highestValue(samples, func(s TaskSample) int64 {
		if n := s.end.GetUsage().GetPeakMemory(); n > 0 {
			return n
		}
		return s.end.GetMaxRss()
	}))
	if !same {
		return ""
	}
	return MemoryHint(asked, peak, len(samples))
}

// MemoryHint is what RightSize says about the memory of tasks that asked for the same and
// used at most peak.
func MemoryHint(asked, peak roost.Bytes, tasks int) string {
	return bytesHint("memory", "", asked, peak, tasks)
}

// gpuMemoryHint is about the share of each card; the measurement is of all of a task's
// cards together.
func gpuMemoryHint(samples []TaskSample) string {
	asked, same := commonValue(samples, func(s TaskSample) roost.Bytes { return s.asked.GPUMemory })
	gpus, alike := commonValue(samples, func(s TaskSample) int { return int(s.asked.GPUs) })
	if !same || !alike || gpus < 1 {
		return ""
	}
	peak := highestValue(samples, func(s TaskSample) int64 { return s.end.GetUsage().GetPeakGpuMemory() })
	return bytesHint("gpu_memory", " of GPU memory", asked, roost.Bytes(peak/int64(gpus)), len(samples))
}

// bytesHint is about an amount that a task must not exceed. Too large a request keeps
// others out; too small a one ends the task.
func bytesHint(name, of string, asked, peak roost.Bytes, tasks int) string {
	switch enough := SuggestedBytes(asked, peak, tasks); {
	case enough == 0:
		return ""
	case enough < asked:
		return fmt.Sprintf("asked for %v%s, used at most %v %s: %s = %q would do", asked, of, roundDisplay(peak),
			samplesText(tasks), name, enough.String())
	default:
		return fmt.Sprintf("asked for %v%s and used %v, nearly all, %s: %s = %q would be safer", asked, of,
			roundDisplay(peak), samplesText(tasks), name, enough.String())
	}
}

// SuggestedBytes is what tasks should ask for next time; 0: the same. It is less where
// they used at most peak of much that they asked for, and more where they used nearly
// all.
func SuggestedBytes(asked, peak roost.Bytes, tasks int) roost.Bytes {
	enough := autoscale.RoundMemory(roost.Bytes(float64(peak) * withMargin(tasks)))
	switch {
	case peak <= 0 || asked <= 0:
		return 0
	case asked >= minMemory && enough <= asked/2 && asked-enough >= minSaving:
		return enough
	case peak <= asked && peak >= asked/100*95 && asked >= 64*roost.MiB:
		return autoscale.RoundMemory(asked / 4 * 5)
	}
	return 0
}

// roundDisplay leaves out what is too fine to matter.
func roundDisplay(b roost.Bytes) roost.Bytes {
	if b >= 10*roost.MiB {
		return (b + roost.MiB/2) / roost.MiB * roost.MiB
	}
	return b
}

// coresHint is about cores that stood idle. What was measured is an average over each
// task's life, so it takes half of them to be worth a word.
func coresHint(samples []TaskSample) string {
	asked, same := commonValue(samples, func(s TaskSample) roost.MilliCPU { return s.asked.CPU })
	busy := highestValue(samples, func(s TaskSample) float64 {
		e := s.end
		if e.GetWall() < int64(minMeasuredTime) {
			return math.Inf(1)
		}
		return float64(e.GetUserCpu()+e.GetSystemCpu()) / float64(e.GetWall())
	})
	// one core that is always busy is one, also where the clocks differ a little
	enough := max(math.Ceil(busy*1.05-0.15), 1)
	if !same || asked < 2000 || enough > float64(asked)/2000 {
		return ""
	}
	return fmt.Sprintf("asked for %v cores, kept at most %s busy on average %s: cpus = %.0f would do", asked,
		strconv.FormatFloat(busy, 'f', 1, 64), samplesText(len(samples)), enough)
}

// gpuHint is about GPUs that were never touched.
func gpuHint(samples []TaskSample) string {
	asked, same := commonValue(samples, func(s TaskSample) int { return int(s.asked.GPUs) })
	if !same || asked < 1 {
		return ""
	}
	for _, s := range samples {
		if u := s.end.GetUsage(); u == nil || u.GetGpu() > 0 || u.GetPeakGpuMemory() > 0 ||
			s.end.GetWall() < int64(minMeasuredTime) {
			return ""
		}
	}
	return fmt.Sprintf("asked for %s, and was never seen to use any %s", Plural(asked, "GPU"),
		samplesText(len(samples)))
}

// walltimeHint is about a walltime limit that is far above the use, or too close. With a
// long limit a task waits for gaps that it does not need.
func walltimeHint(samples []TaskSample) string {
	asked, same := commonValue(samples, func(s TaskSample) time.Duration { return s.walltime })
	longest := time.Duration(highestValue(samples, func(s TaskSample) int64 { return s.end.GetWall() }))
	if !same || asked < minWalltime || longest <= 0 {
		return ""
	}
	enough := roundWalltime(time.Duration(float64(longest) * withMargin(len(samples)) * 1.2))
	switch {
	case enough <= asked/3:
		return fmt.Sprintf("asked for a walltime of %s, took at most %s %s: walltime = %q would do",
			durationSetting(asked), SpanText(longest), samplesText(len(samples)), durationSetting(enough))
	case longest >= asked/100*95:
		return fmt.Sprintf("took %s of a walltime of %s, nearly all, %s: walltime = %q would be safer",
			SpanText(longest), durationSetting(asked), samplesText(len(samples)),
			durationSetting(roundWalltime(asked/4*5)))
	}
	return ""
}

// roundWalltime rounds a length of time up to one that people would write.
func roundWalltime(d time.Duration) time.Duration {
	step := 5 * time.Minute
	switch {
	case d > 24*time.Hour:
		step = 4 * time.Hour
	case d > 4*time.Hour:
		step = time.Hour
	case d > time.Hour:
		step = 15 * time.Minute
	}
	return (d + step - 1) / step * step
}

// durationSetting is a length of time as job files have it: "1h30m".
func durationSetting(d time.Duration) string {
	d = d.Round(time.Minute)
	h, m := d/time.Hour, d%time.Hour/time.Minute
	switch {
	case h > 0 && m > 0:
		return fmt.Sprintf("%dh%dm", h, m)
	case h > 0:
		return fmt.Sprintf("%dh", h)
	}
	return fmt.Sprintf("%dm", m)
}
