package journal

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/memorydir"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/schedd/queue"
)

// crashDir names the environment variable that makes this test binary append until it is
// killed.
const crashDir = "ROOST_TEST_JOURNAL_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		fmt.Fprintln(os.Stderr, appendForever(dir))
		os.Exit(1)
	}
	memorydir.Use()
	os.Exit(m.Run())
}

// appendForever submits one job after the other, with occasional checkpoints. It prints
// the number of each when Append has returned.
func appendForever(dir string) error {
	j, q, err := Open(dir, host)
	if err != nil {
		return err
	}
	var t testing.T
	s := newRandomWorkload(1, q)
	for {
		s.keys = int(q.LastSeq())
		events := s.submit(&t, 2)
		s.apply(events)
		if e, _, err := q.AssignNext(epoch, roost.JobID{Seq: q.LastSeq(), Host: host}.Task(1), "n", "unix:/n",
			1); err == nil {
			s.apply([]queue.JobEvent{e})
			events = append(events, e)
		}
		var c *QueueCheckpoint
		if q.LastSeq()%5 == 0 {
			c = fullCheckpoint(q)
		}
		if err := appendWith(j, events, c); err != nil {
			return err
		}
		fmt.Println(q.LastSeq())
	}
}

// TestCrash checks that every acknowledged batch survives a crash at any time. It must be
// complete: no job may lack its second event.
func TestCrash(t *testing.T) {
	dir, rng := t.TempDir(), rand.New(rand.NewPCG(1, 2))
	rounds := 40
	if testing.Short() {
		rounds = 5
	}
	for round := range rounds {
		acknowledged := crashAppender(t, dir, time.Duration(rng.Int64N(int64(15*time.Millisecond))))
		j, q, err := Open(dir, host)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		q.Check()
		if last := q.LastSeq(); last < acknowledged || last > acknowledged+1 {
			t.Fatalf("round %d: job %d was acknowledged, and %d is the last there", round, acknowledged, last)
		}
		for seq := uint64(1); seq <= q.LastSeq(); seq++ {
			if st, ok := q.Status(seq); !ok || st.Counts[roost.Starting] != 1 || st.Counts[roost.Idle] != 1 {
				t.Fatalf("round %d: job %d is not whole: %v, %v", round, seq, ok, st.Counts)
			}
		}
		j.Close()
	}
}

// crashAppender starts a process that appends, and kills it a moment after its first
// acknowledgement. It returns the last acknowledged job.
func crashAppender(t *testing.T, dir string, moment time.Duration) (last uint64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), crashDir+"="+dir), os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var timer *time.Timer
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if last, err = strconv.ParseUint(lines.Text(), 10, 64); err != nil {
			t.Fatal(err)
		}
		if timer == nil {
			timer = time.AfterFunc(moment, func() { cmd.Process.Kill() })
		}
	}
	if timer == nil {
		t.Fatal("nothing was acknowledged")
	}
	cmd.Wait()
	return last
}
