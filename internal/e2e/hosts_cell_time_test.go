package e2e

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// timeToNextGrant measures how long no grants are made after the leader was killed. A job
// is submitted then, and the time ends when its schedd has the claim. ROOST_CELL_ROUNDS
// sets the number of rounds; 11 give a good median.
func (h *cellHostPool) timeToNextGrant() {
	rounds := 3
	if n, err := strconv.Atoi(os.Getenv("ROOST_CELL_ROUNDS")); err == nil {
		rounds = n
	}
	conn, err := rpc.Dial("unix:"+filepath.Join(h.nodes["submit"].dir, "run", "schedd.sock"), nil, "")
	if err != nil {
		h.Fatal(err)
	}
	defer conn.Close()
	client := wire.NewScheddClient(conn)
	var elected, mpiGang, joined, granted []time.Duration
	for round := range rounds {
		h.awaitThreeVoters()
		leader := h.nodes[h.awaitLeader()]
		killed := time.Now()
		leader.killMaster() // with its master, which would otherwise restart it as leader again
		id := h.submitJob(fmt.Sprintf(`job "next-%d" { command = ["true"] }`, round))
		h.awaitTrue(id+" completes", func() bool { return h.showTask(id).State == "completed" })
		granted = append(granted, h.eventTime(client, id, "assigned").Sub(killed))
		elected = append(elected, h.timeToFirstGrant(killed, otherCentrals(leader.name), `this replica leads`))
		mpiGang = append(mpiGang, h.timeToFirstGrant(killed, otherCentrals(leader.name), `this negotiator leads`))
		joined = append(joined, h.timeToFirstGrant(killed, otherCentrals(leader.name), `schedd joined`))
		leader.start()
	}
	h.Logf("leader killed %d times, medians: a replica leads after %v, its negotiator after %v, the schedd "+
		"has joined it after %v, and has a claim after %v (at most %v)",
		rounds, median(elected), median(mpiGang), median(joined), median(granted), slices.Max(granted))
}

func median(all []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(all))[len(all)/2].Round(time.Millisecond)
}

// eventTime returns the time of an event in a job's log.
func (h *cellHostPool) eventTime(client wire.ScheddClient, id, what string) time.Time {
	h.Helper()
	stream, err := client.Events(h.Context(), &wire.EventsRequest{Id: id})
	var e *wire.JobEvent
	for err == nil {
		if e, err = stream.Recv(); err == nil && e.GetWhat() == what {
			return time.Unix(0, e.GetTime())
		}
	}
	if !errors.Is(err, io.EOF) {
		h.Error(err)
	}
	h.Fatalf("%s was never %s", id, what)
	return time.Time{}
}

// timeToFirstGrant returns how long after a moment one of the nodes' negotiators first
// logged a message.
func (h *cellHostPool) timeToFirstGrant(moment time.Time, nodes []string, message string) time.Duration {
	h.Helper()
	line := regexp.MustCompile(`(?m)^time=(\S+) .*msg="` + message)
	first := time.Hour
	for _, name := range nodes {
		text, _ := os.ReadFile(filepath.Join(h.nodes[name].dir, "log", "negotiator.log"))
		for _, m := range line.FindAllSubmatch(text, -1) {
			if at, err := time.Parse(time.RFC3339, string(m[1])); err == nil &&
				at.After(moment.Truncate(time.Millisecond)) {
				first = min(first, at.Sub(moment))
			}
		}
	}
	return first
}

// leaderIsStopped stops the leader in the middle of its work, and resumes it long after
// another has taken over. It must take no further part until it knows that, and none of
// its earlier decisions may take effect.
func (h *cellHostPool) leaderIsStopped() {
	old := h.awaitLeader()
	pid := h.nodes[old].daemonPID("negotiator")
	before := h.submitArray("stopped-before")
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		h.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT)
	during := h.submitArray("stopped-during")
	h.awaitArray(before)
	h.awaitArray(during)
	stopped := 15 * time.Second // longer than the next leader counts pending grants
	if testing.Short() {
		stopped = 3 * time.Second
	}
	waitReal(h.Context(), stopped)
	after := h.submitArray("stopped-after")
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		h.Fatal(err)
	}
	h.awaitArray(after)
	if h.nodes[old].daemonPID("negotiator") != pid {
		h.Errorf("the negotiator that was stopped has died\n%s", h.nodes[old].logText())
	}
}
