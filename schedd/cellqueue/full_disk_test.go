package cellqueue

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/damage"
	"github.com/roost-batch/roost/schedd/journal"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestFullDisk fills the disk of a member, which leads or follows. The others go on, and
// what was acknowledged is on all members when there is room again.
func TestFullDisk(t *testing.T) {
	for _, leads := range []bool{false, true} {
		t.Run(map[bool]string{false: "follower", true: "leader"}[leads], func(t *testing.T) { fillMember(t, leads) })
	}
}

func fillMember(t *testing.T, leads bool) {
	f := newFullDisk(t, leads)
	f.submitUntil(10) // then the first segments of all logs are there
	ballast := filepath.Join(f.disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 128<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("fill the disk: %v", err)
	}
	f.submitUntil(90) // 11 MiB
	f.schedd.stepDown()
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	f.awaitLate()
	// what is submitted now comes only to a member that has got over its full disk
	f.schedd = f.lead(f.leader(), 2, &f.keys)
	f.submitUntil(f.acknowledged + 1)
	f.schedd.stepDown()
	for deadline := time.Now().Add(time.Minute); f.members[0] == nil ||
		f.members[0].nextBatch() != f.schedd.member.nextBatch(); f.rest() {
		if f.reapFull(); f.members[0] == nil {
			f.start(0)
		}
		if time.Now().After(deadline) {
			t.Fatal("the member whose disk was full neither goes on nor ends")
		}
	}
	f.awaitLate()
	with := f.leader()
	f.checkEqual(with, f.acknowledged)
	present := 0
	q := f.members[with].follower.queue
	for seq := uint64(1); seq <= q.LastSeq(); seq++ {
		if _, there := q.SubmitKey(seq); there {
			present++
		}
	}
	if present < f.acknowledged {
		t.Errorf("%d jobs were acknowledged, and %d are there", f.acknowledged, present)
	}
	t.Logf("%d jobs were acknowledged, and %d are there", f.acknowledged, present)
}

// fullDisk is a cell whose member 0 has a small disk, and to which jobs are submitted.
type fullDisk struct {
	*testCell
	disk               string
	schedd             *testSchedd // that leads
	keys, acknowledged int
	late               []lateAnswer
}

// newFullDisk starts a cell that member 0 leads, or does not.
func newFullDisk(t *testing.T, leads bool) *fullDisk {
	c := &testCell{TB: t, members: make([]*testMember, 3), election: 2 * time.Second}
	c.dir = t.TempDir()
	f := &fullDisk{testCell: c, disk: damage.SmallDisk(t, "", 96<<20, 0o700)}
	if err := os.Symlink(f.disk, c.memberDir(0)); err != nil {
		t.Fatal(err)
	}
	c.addresses = memberAddresses(c.dir)
	for i := range c.members {
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range c.members {
			c.stop(i)
		}
	})
	with := c.leader()
	for leads != (with == 0) { // another one leads after each restart, member 0 sooner or later
		c.stop(with)
		before := with
		with = c.leader()
		c.start(before)
	}
	f.schedd = c.lead(with, 1, &f.keys)
	return f
}

// submitUntil submits jobs until so many are acknowledged. Where another member leads
// meanwhile, it goes on there.
func (f *fullDisk) submitUntil(enough int) {
	f.Helper()
	for f.acknowledged < enough {
		answer := f.schedd.submitLarge()
		answered, err := f.awaitAnswer(answer, f.schedd)
		switch {
		case answered && err == nil:
			f.acknowledged++
			continue
		case answered:
			f.schedd.stepDown()
		default:
			f.late = append(f.late, lateAnswer{f.schedd, answer})
		}
		f.reapFull()
		f.schedd = f.lead(f.leader(), 2, &f.keys)
	}
}

// awaitLate waits for the answers of leaders that others have followed.
func (f *fullDisk) awaitLate() {
	for _, l := range f.late {
		if <-l.answer == nil {
			f.acknowledged++
		}
		l.schedd.stepDown()
	}
	f.late = nil
}

// lateAnswer is a submission to a leader that another one has followed meanwhile.
type lateAnswer struct {
	schedd *testSchedd
	answer chan error
}

// awaitAnswer waits for the answer to a submission, or until another member leads.
func (c *testCell) awaitAnswer(answer <-chan error, s *testSchedd) (answered bool, err error) {
	for {
		select {
		case err := <-answer:
			return true, err
		case <-time.After(50 * time.Millisecond):
		}
		if c.members[0] != s.member {
			continue // its disk has room
		}
		for i := 1; i < len(c.members); i++ {
			if c.leads(i) {
				return false, nil
			}
		}
	}
}

// reapFull takes away the member whose disk is full if it has ended. It must have said
// why, and what to do.
func (c *testCell) reapFull() {
	c.Helper()
	r := c.members[0]
	if r == nil {
		return
	}
	select {
	case err := <-r.done:
		if err == nil || !strings.Contains(err.Error(), "make room in") {
			c.Errorf("the member with the full disk ended with %v", err)
		}
		r.cancel()
		r.server.Stop()
		c.members[0] = nil
	default:
	}
}

// submitLarge submits a job, and returns where the answer comes.
func (s *testSchedd) submitLarge() (answer chan error) {
	s.Helper()
	ad, err := classad.Parse(`[Cmd = "/bin/true"; Script = "` + strings.Repeat("x", 128<<10) + `"]`)
	if err != nil {
		s.Fatal(err)
	}
	*s.keys++
	events, _, _, err := s.queue.SubmitJobs(s.now, alice, fmt.Sprint("k", *s.keys),
		[]queue.SubmitSpec{{Ad: ad, Count: 1}}, queue.SubmitLimits{MaxLog: journal.MaxSubmission})
	if err != nil {
		s.Fatal(err)
	}
	for _, e := range events {
		s.queue.Apply(e)
	}
	answer = make(chan error, 1)
	go func() { answer <- s.journal.Append(events) }()
	return answer
}
