package sim

import (
	"syscall"
	"testing"
	"time"
)

// BenchmarkReplay replays published logs. It reports processor time for each job, because
// other users of the machine disturb wall time.
func BenchmarkReplay(b *testing.B) {
	for _, test := range []struct {
		name, log string
		opt       ReplayOptions
	}{
		{"FCFS/KTH", "KTH-SP2.easy", ReplayOptions{Order: FirstComeFirstServed}},
		{"EASY/KTH", "KTH-SP2.easy", ReplayOptions{Order: EASY}},
		{"SJBF/KTH", "KTH-SP2.easy", ReplayOptions{Order: SJBF, Estimate: LastTwo}},
		{"FCFS/CTC", "CTC-SP2.easy", ReplayOptions{Order: FirstComeFirstServed}},
		{"EASY/CTC", "CTC-SP2.easy", ReplayOptions{Order: EASY}},
		{"SJBF/CTC", "CTC-SP2.easy", ReplayOptions{Order: SJBF, Estimate: LastTwo}},
	} {
		b.Run(test.name, func(b *testing.B) {
			log := publishedSchedule(b, test.log)
			var err error
			if test.opt.Processors, err = log.Processors(); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			jobs, began := 0, processorTime(b)
			for b.Loop() {
				p, err := Replay(log, test.opt)
				if err != nil {
					b.Fatal(err)
				}
				jobs += len(p.Jobs)
			}
			b.ReportMetric(float64(jobs)/b.Elapsed().Seconds(), "jobs/s")
			b.ReportMetric(float64(jobs)/(processorTime(b)-began).Seconds(), "jobs/cpu-s")
		})
	}
}

// processorTime returns the processor time of this process, garbage collection included.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
