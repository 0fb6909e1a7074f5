package document

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// taskEvents makes the events of a task, with times in seconds.
type taskEvents struct {
	list    []*scheddapi.JobEvent
	now     int64
	attempt uint32
	origin  *scheddapi.CheckpointImage
	newest  []*scheddapi.CheckpointImage
	count   uint64
}

func (s *taskEvents) add(what string, at int64, e *scheddapi.JobEvent) {
	e.What, e.Time, e.Attempt = what, at*1e9, s.attempt
	s.now = at
	s.list = append(s.list, e)
}

func (s *taskEvents) start(at int64) {
	s.attempt++
	s.origin = nil
	if n := len(s.newest); n > 0 {
		s.origin = s.newest[n-1]
	}
	s.add("assigned", at, &scheddapi.JobEvent{Image: s.origin, Node: fmt.Sprintf("n%d", s.attempt)})
	s.add("started", at, &scheddapi.JobEvent{Image: s.origin})
}

// checkpoint takes an image that holds so many seconds of the present attempt.
func (s *taskEvents) checkpoint(at, held int64) {
	s.count++
	m := &scheddapi.CheckpointImage{Sequence: s.count, Attempt: s.attempt, Time: at * 1e9, Size: 10, RawSize: 30,
		Frozen: 2e8, Wall: held*1e9 + s.origin.GetWall()}
	s.newest = append(s.newest, m)
	s.add("checkpointed", at, &scheddapi.JobEvent{Image: m})
}

func (s *taskEvents) end(at, wall int64, cause scheddapi.Cause) {
	s.add("ended", at, &scheddapi.JobEvent{Exit: &scheddapi.ExitStatus{Cause: cause, Wall: wall * 1e9}})
	if cause == scheddapi.Cause_CAUSE_RESTORE {
		s.newest = s.newest[:len(s.newest)-1]
	}
}

func (s *taskEvents) of(row *scheddapi.JobStatus) CheckpointTimeline {
	return CheckpointTimelineOf(row, s.list, time.Unix(s.now, 0))
}

const (
	exited, preempted = scheddapi.Cause_CAUSE_EXITED, scheddapi.Cause_CAUSE_PREEMPTED
	unrestored        = scheddapi.Cause_CAUSE_RESTORE
)

func completedRow() *scheddapi.JobStatus {
	return &scheddapi.JobStatus{Id: "1.n1", State: "completed", Tasks: 1, Exit: &scheddapi.ExitStatus{Cause: exited}}
}

// checkTimeline compares the seconds of each attempt: wall, useful, lost, unsaved.
func checkTimeline(t *testing.T, name string, got CheckpointTimeline, want ...[4]float64) {
	t.Helper()
	var all [][4]float64
	for _, a := range got.Attempts {
		all = append(all, [4]float64{a.Wall, a.Useful, a.Lost, a.Unsaved})
	}
	if fmt.Sprint(all) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", name, all, want)
	}
}

// TestCheckpointTimeline holds what is useful and what is lost in the usual lives of a
// task.
func TestCheckpointTimeline(t *testing.T) {
	s := &taskEvents{}
	s.start(0)
	s.checkpoint(60, 55)
	s.checkpoint(90, 80)
	s.end(100, 100, preempted)
	waits := s.of(&scheddapi.JobStatus{State: "idle"})
	checkTimeline(t, "waiting", waits, [4]float64{100, 80, 20, 0})
	s.start(200)
	s.add("", 230, &scheddapi.JobEvent{})
	checkTimeline(t, "running", s.of(&scheddapi.JobStatus{State: "running"}), [4]float64{100, 80, 20, 0},
		[4]float64{30, 0, 0, 30})
	checkTimeline(t, "by the node's clock", s.of(&scheddapi.JobStatus{State: "running", Attempt: 2,
		Usage: &scheddapi.TaskUsage{Wall: 29e9}}), [4]float64{100, 80, 20, 0}, [4]float64{29, 0, 0, 29})
	s.checkpoint(240, 40)
	s.add("lost", 250, &scheddapi.JobEvent{Text: "the node is gone"})
	s.start(300)
	s.end(300, 0, unrestored)
	s.start(310)
	s.end(400, 90, exited)
	got := s.of(completedRow())
	checkTimeline(t, "completed", got, [4]float64{100, 80, 20, 0}, [4]float64{50, 0, 50, 0}, [4]float64{},
		[4]float64{90, 90, 0, 0})
	if got.Images[2].Bad == "" || got.Images[1].Restores != 2 || got.Images[1].Saved != 160 || got.Restores != 3 ||
		math.Abs(got.Frozen-0.6) > 1e-9 || got.Images[2].Node != "n2" || got.Attempts[3].From != 2 {
		t.Errorf("got %+v", got)
	}
	if text := got.Summary(); text != "4m00s: 2m50s useful, 1m10s lost; 3 checkpoints, 3 restores" {
		t.Errorf("got %s", text)
	}
}

// TestCheckpointTimelineRetried: nothing of before a retry is useful. What a schedd says
// that makes no sense does no harm.
func TestCheckpointTimelineRetried(t *testing.T) {
	s := &taskEvents{}
	s.start(0)
	s.checkpoint(5, 5)
	s.end(10, 10, preempted)
	s.list = append(s.list, &scheddapi.JobEvent{What: "retried"})
	checkTimeline(t, "retried", s.of(&scheddapi.JobStatus{State: "idle"}), [4]float64{10, 0, 10, 0})
	s.newest = nil
	s.start(20)
	s.end(30, 10, exited)
	checkTimeline(t, "completed", s.of(completedRow()), [4]float64{10, 0, 10, 0}, [4]float64{10, 10, 0, 0})
	wrong := &scheddapi.CheckpointImage{Sequence: 9, Attempt: 7, Wall: math.MaxInt64}
	s.attempt = 6
	for _, what := range []string{"assigned", "started", "checkpointed", "checkpoint-bad", "lost", ""} {
		s.add(what, 40, &scheddapi.JobEvent{Image: wrong})
		s.add(what, -40, &scheddapi.JobEvent{})
		s.of(&scheddapi.JobStatus{State: "running"})
	}
	if got := CheckpointTimelineOf(&scheddapi.JobStatus{}, nil, time.Now()); got.Summary() != "" ||
		got.Images == nil || got.Attempts == nil {
		t.Errorf("without events: got %+v", got)
	}
}

// TestCheckpointTimelineSums holds that all parts make up the wall time, in any life.
func TestCheckpointTimelineSums(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		s, wall, done := &taskEvents{}, int64(0), int64(0)
		for range 1 + random.IntN(8) {
			s.start(s.now + random.Int64N(100))
			if s.origin != nil && random.IntN(4) == 0 {
				s.end(s.now, 0, unrestored)
				continue
			}
			began, ran := s.now, int64(0)
			for range random.IntN(4) {
				ran += 1 + random.Int64N(50)
				s.checkpoint(began+ran, ran)
			}
			ran += random.Int64N(50)
			s.end(began+ran, ran, preempted)
			wall += ran
		}
		if n := len(s.newest); n > 0 {
			done = s.newest[n-1].Wall / 1e9
		}
		s.start(s.now + 5)
		s.end(s.now+7, 7, exited)
		got := s.of(completedRow())
		if math.Abs(got.Useful+got.Lost+got.Unsaved-got.Wall) > 1e-6 || got.Wall != float64(wall+7) ||
			math.Abs(got.Useful-float64(done+7)) > 1e-6 {
			t.Fatalf("seed %d: %+v; wall %d, in the newest image %d", seed, got, wall+7, done)
		}
	}
}
