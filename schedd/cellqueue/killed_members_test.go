package cellqueue

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/identity/peer"
	"github.com/roost-batch/roost/internal/replica"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/schedd/queue"
)

// memberProcess names the environment variable that makes this test binary a member: its
// number and the directory of all.
const memberProcess = "ROOST_TEST_CELL_MEMBER"

// runMemberProcess runs a member until it is killed. While it leads it submits one job
// after the other, and prints the key of each when it is acknowledged.
func runMemberProcess(text string) error {
	number, dir, _ := strings.Cut(text, " ")
	i, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	addresses := memberAddresses(dir)
	log := slog.New(slog.DiscardHandler)
	own := filepath.Join(dir, number)
	m, err := Open(Config{Dir: filepath.Join(own, "schedd"), Name: queueName, Log: log, CheckpointBytes: 4 << 10,
		Replica: replica.Config{Dir: filepath.Join(own, "replica"), Name: fmt.Sprint("cm", i), Address: addresses[i],
			Peers: addresses, Log: log, Snapshots: replica.SnapshotPolicy{Entries: 200, Interval: time.Second,
				Trailing: 20}}})
	if err != nil {
		return err
	}
	listener, err := rpc.Listen(addresses[i], 0o600)
	if err != nil {
		return err
	}
	server := rpc.NewServer(nil, peer.MethodAccess(), grpc.WaitForHandlers(true))
	m.Register(server)
	go server.Serve(listener)
	ended := make(chan error, 1)
	go func() { ended <- m.Run(context.Background()) }()
	for {
		select {
		case err := <-ended:
			return err
		case change := <-m.Replica().Leadership():
			if !change.IsLeader {
				continue
			}
			if err := submitWhileLeading(m, fmt.Sprintf("%d-%d-%d", i, os.Getpid(), change.Term)); err != nil {
				return err
			}
		}
	}
}

// submitWhileLeading submits until a commit fails. The error is that of anything else.
func submitWhileLeading(m *Member, name string) error {
	if err := m.StepUp(); err != nil {
		return err
	}
	j, q, err := m.OpenJournal(nil)
	if err != nil {
		return err
	}
	ad, err := classad.Parse(`[Cmd = "/bin/true"]`)
	if err != nil {
		return err
	}
	for n := 0; ; n++ {
		key := fmt.Sprintf("%s-%d", name, n)
		events, _, _, err := q.SubmitJobs(time.Now(), alice, key, []queue.SubmitSpec{{Ad: ad, Count: 1}},
			queue.SubmitLimits{})
		if err != nil {
			return err
		}
		for _, e := range events {
			q.Apply(e)
		}
		if err := j.Append(events); err != nil {
			return m.StepDown()
		}
		fmt.Println(key)
	}
}

func memberAddresses(dir string) (all []string) {
	for i := range 3 {
		all = append(all, fmt.Sprintf("unix:%s/%d.sock", dir, i))
	}
	return all
}

// acknowledgedKey is a line of a member process.
type acknowledgedKey struct {
	member int
	key    string
}

// startMemberProcess starts a member whose lines go to a channel until it is killed.
func startMemberProcess(t *testing.T, i int, dir string, lines chan<- acknowledgedKey) (kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env, cmd.Stderr = append(os.Environ(), fmt.Sprintf("%s=%d %s", memberProcess, i, dir)), os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for in := bufio.NewScanner(out); in.Scan(); {
			lines <- acknowledgedKey{i, in.Text()}
		}
	}()
	return func() {
		cmd.Process.Kill()
		<-read
		cmd.Wait()
	}
}

// TestKilledMembers kills the process of the leader again and again while it takes
// submissions. Each acknowledged job is on all members at the end, once.
func TestKilledMembers(t *testing.T) {
	c := &testCell{TB: t, dir: t.TempDir(), members: make([]*testMember, 3)}
	c.addresses = memberAddresses(c.dir)
	lines := make(chan acknowledgedKey, 1<<20) // the processes never wait for this one
	var kills [3]func()
	for i := range kills {
		kills[i] = startMemberProcess(t, i, c.dir, lines)
	}
	defer func() {
		for _, kill := range kills {
			kill()
		}
	}()
	acknowledged := map[string]bool{}
	for round := range 6 {
		for n := range 30 + 7*round { // of whoever leads
			select {
			case line := <-lines:
				acknowledged[line.key] = true
				if n == 29+7*round {
					kills[line.member]()
					kills[line.member] = startMemberProcess(t, line.member, c.dir, lines)
				}
			case <-time.After(2 * time.Minute):
				t.Fatalf("round %d: no job is acknowledged any more, after %d", round, len(acknowledged))
			}
		}
	}
	for _, kill := range kills {
		kill()
	}
	for len(lines) > 0 {
		acknowledged[(<-lines).key] = true
	}
	for i := range c.members {
		c.start(i)
	}
	defer func() {
		for i := range c.members {
			c.stop(i)
		}
	}()
	with := c.leader()
	c.checkEqual(with, 0)
	q := c.members[with].follower.queue
	times := map[string]int{}
	for seq := uint64(1); seq <= q.LastSeq(); seq++ {
		key, _ := q.SubmitKey(seq)
		_, key, _ = strings.Cut(key, ":")
		times[key]++
	}
	for key := range acknowledged {
		if times[key] != 1 {
			t.Errorf("job %s was acknowledged, and is there %d times", key, times[key])
		}
	}
	t.Logf("%d jobs were acknowledged, and %d are there", len(acknowledged), len(times))
}
