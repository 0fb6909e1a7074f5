package document

import (
	"testing"
	"time"
)

// TestProgress holds when the end of a job is estimated, and to what.
func TestProgress(t *testing.T) {
	now := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	job := func(tasks uint32, started string, counts map[string]uint32) *Job {
		return &Job{Tasks: tasks, Started: started, Counts: counts}
	}
	ended := job(4, "2026-11-28T11:00:00Z", map[string]uint32{"completed": 4})
	ended.Ended = "2026-11-28T11:30:00Z"
	service := job(4, "2026-11-28T11:00:00Z", map[string]uint32{"running": 4})
	service.Service = &Service{}
	for name, c := range map[string]struct {
		job  *Job
		want *Progress
	}{
		"one task": {job(1, "2026-11-28T11:00:00Z", map[string]uint32{"running": 1}), nil},
		"ended":    {ended, nil},
		"service":  {service, nil},
		"waiting":  {job(9, "", map[string]uint32{"idle": 9}), &Progress{0, 9, ""}},
		// 25 of 100 in an hour: 75 more take three
		"steady": {job(100, "2026-11-28T11:00:00Z", map[string]uint32{"completed": 25, "failed": 5, "running": 8,
			"idle": 67}), &Progress{25, 100, "2026-11-28T15:00:00Z"}},
		// the rate is that of the 20 that ran, and 70 are left
		"removed": {job(100, "2026-11-28T11:00:00Z", map[string]uint32{"completed": 20, "removed": 10, "running": 70}),
			&Progress{30, 100, "2026-11-28T15:30:00Z"}},
		"too early": {job(100, "2026-11-28T11:00:00Z", map[string]uint32{"completed": 1, "running": 99}),
			&Progress{1, 100, ""}},
		"held": {job(100, "2026-11-28T11:00:00Z", map[string]uint32{"completed": 25, "running": 8, "held": 67}),
			&Progress{25, 100, ""}},
		"nothing runs": {job(100, "2026-11-28T11:00:00Z", map[string]uint32{"completed": 25, "idle": 75}),
			&Progress{25, 100, ""}},
		"clocks differ": {job(100, "2026-11-28T13:00:00Z", map[string]uint32{"completed": 25, "running": 75}),
			&Progress{25, 100, ""}},
	} {
		got := ProgressOf(c.job, now)
		if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}
