package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/rpc"
	"github.com/roost-batch/roost/internal/wire"
)

// fencedArray is an array job that is held or removed during a fault.
type fencedArray struct {
	id, name string
	stopped  int64 // unix nanoseconds of the acknowledgement of the hold or removal
	released bool
}

const fencedSize = 60

// submitFencedArray submits such a job for a node, and waits until some of its tasks have
// begun. The others have no room yet, or are in transit.
func (h *cellHostPool) submitFencedArray(name, node string) *fencedArray {
	h.Helper()
	f := &fencedArray{name: "fenced-" + name}
	f.id = h.submitJob(fmt.Sprintf(`job %q {
  script = <<-END
exec 9>%[3]s.$ROOST_TASK_INDEX
flock -n 9 || { echo "overlap $ROOST_TASK_INDEX $ROOST_ATTEMPT 0 -" >> %[2]s; exit 99; }
echo "start $ROOST_TASK_INDEX $ROOST_ATTEMPT $(date +%%s%%N) $ROOST_NODE" >> %[2]s
sleep 0.5
echo "end $ROOST_TASK_INDEX $ROOST_ATTEMPT $(date +%%s%%N) $ROOST_NODE" >> %[2]s
  END
  count = %[4]d
  lease = "10s"
  requirements = "TARGET.Name == \"%[5]s\""
}`, f.name, h.newTaskLog(f.name), filepath.Join(h.home, "lock-"+f.name), fencedSize, node))
	h.awaitTrue(f.name+" has begun", func() bool { return len(h.taskLogLines(f.name)) > 0 })
	return f
}

// stopArray holds or removes such a job, and records when that was acknowledged.
func (h *cellHostPool) stopArray(f *fencedArray, verb string) {
	h.Helper()
	h.changeArray(f, verb)
	f.stopped = time.Now().UnixNano()
	h.fences = append(h.fences, f)
}

// releaseArray releases such a job.
func (h *cellHostPool) releaseArray(f *fencedArray) {
	h.Helper()
	h.changeArray(f, "release")
	f.released = true
}

// changeArray runs a command on such a job. An election that takes long on a slow machine
// leaves its tasks the time to end before: the claims of the job outlive the leader.
func (h *cellHostPool) changeArray(f *fencedArray, verb string) {
	h.Helper()
	_, stderr, code := h.runAs(someone, verb, "--yes", f.id)
	if code == roost.Finished.ExitCode() {
		h.Logf("%s: all its tasks ended before roost %s", f.name, verb)
	} else if code != 0 {
		h.printLogs()
		h.Fatalf("roost %s %s: exit %d\n%s", verb, f.id, code, stderr)
	}
}

// checkFences checks that no attempt of a job began between its hold or removal and its
// release (P8). No two attempts of a task may overlap (P4), and released tasks must run
// once (P3).
func (h *cellHostPool) checkFences() {
	h.Helper()
	conn, err := rpc.Dial("unix:"+filepath.Join(h.nodes["submit"].dir, "run", "schedd.sock"), nil, "")
	if err != nil {
		h.Fatal(err)
	}
	defer conn.Close()
	client := wire.NewScheddClient(conn)
	for _, f := range h.fences {
		state := ""
		h.awaitTrue(f.name+" is over (P9)", func() bool {
			state = h.showTask(f.id).State
			return state == "completed" || state == "removed" || state == "failed"
		})
		if f.released && state != "completed" {
			h.Errorf("%s has %s", f.name, state)
		}
		h.Logf("%s: %s", f.name, state)
		h.checkFence(f, h.jobEvents(client, f.id))
	}
}

// attemptRecord identifies an attempt of a task.
type attemptRecord struct{ index, number int }

func attemptOfEvent(e *wire.JobEvent) attemptRecord {
	a := attemptRecord{number: int(e.GetAttempt())}
	_, index, _ := strings.Cut(e.GetId(), "[")
	index, _, _ = strings.Cut(index, "]")
	a.index, _ = strconv.Atoi(index)
	return a
}

func (h *cellHostPool) checkFence(f *fencedArray, events []*wire.JobEvent) {
	// assigned: true if assigned after a release
	assigned, lost, completed := map[attemptRecord]bool{}, map[attemptRecord]bool{}, map[int]int{}
	fence := false
	for _, e := range events {
		switch e.GetWhat() {
		case "held", "removed":
			fence = true
		case "released":
			fence = false
		case "assigned":
			if fence {
				h.Errorf("P8: %s: attempt %d of %s was assigned after the job was stopped", f.name, e.GetAttempt(),
					e.GetId())
			}
			assigned[attemptOfEvent(e)] = e.GetTime() > f.stopped
		case "lost":
			lost[attemptOfEvent(e)] = true
		case "completed":
			index := attemptOfEvent(e).index
			if completed[index]++; completed[index] > 1 {
				h.Errorf("P3: %s: %s has %d completions on record", f.name, e.GetId(), completed[index])
			}
		}
	}
	begun, ends := 0, map[int]int{}
	for _, m := range h.taskLogLines(f.name) {
		late, known := assigned[attemptRecord{m.index, m.attempt}]
		switch {
		case m.what == "overlap":
			h.Errorf("P4: %s: two attempts of task %d live at the same time", f.name, m.index)
		case !known:
			h.Errorf("P8: %s: attempt %d of task %d was begun on %s and never assigned", f.name, m.attempt,
				m.index, m.node)
		// an attempt that ended during a partition is unknown, and the task runs again
		case m.what == "end" && !lost[attemptRecord{m.index, m.attempt}]:
			ends[m.index]++
		case m.what == "start" && m.at > f.stopped && !late:
			begun++ // assigned before the hold
			// a node that is cut off learns of it at the end of a lease
			if after := time.Duration(m.at - f.stopped); after > shortLease+deathDelay {
				h.Errorf("P8: %s: attempt %d of task %d was begun on %s %v after the job was stopped", f.name,
					m.attempt, m.index, m.node, after)
			}
		}
	}
	for index, n := range ends {
		// the command to end an attempt may meet its last line: then the task runs again
		if n != 1 && completed[index] != 1 {
			h.Errorf("P3: %s: task %d has ended %d times, and %d completions are on record", f.name, index, n,
				completed[index])
		}
	}
	if f.released && len(ends) != fencedSize {
		h.Errorf("P3: %s: %d of %d tasks have ended", f.name, len(ends), fencedSize)
	}
	h.Logf("%s: %d attempts, %d of them on their way when it was stopped", f.name, len(assigned), begun)
}

// jobEvents returns all events of a job, in order.
func (h *hostPool) jobEvents(client wire.ScheddClient, id string) (all []*wire.JobEvent) {
	h.Helper()
	stream, err := client.Events(h.Context(), &wire.EventsRequest{Id: id})
	var e *wire.JobEvent
	for err == nil {
		if e, err = stream.Recv(); err == nil {
			all = append(all, e)
		}
	}
	if !errors.Is(err, io.EOF) {
		h.Fatal(err)
	}
	return all
}

// The lease of a task on a node that is cut off, and the time until its processes are
// dead.
const (
	shortLease = 10 * time.Second // the shortest
	deathDelay = 3 * time.Second  // the schedd waits for longer
)

// clingingScript is a task whose processes ignore signals. Each has a session of its own
// and records when it was alive, on the clock that measures leases.
const clingingScript = `beat() { trap "" TERM HUP INT; while [ ! -e %[2]s ]; do read up idle < /proc/uptime; echo "$1 $ROOST_ATTEMPT $ROOST_NODE $up" >> %[1]s; sleep 0.05; done; }
export ROOST_ATTEMPT ROOST_NODE
beat child &
setsid sh -c 'trap "" TERM HUP INT; while [ ! -e %[2]s ]; do read up idle < /proc/uptime; echo "stray $ROOST_ATTEMPT $ROOST_NODE $up" >> %[1]s; sleep 0.05; done' > /dev/null 2>&1 &
beat main
exit 6`

// nodeIsCutOff cuts a node off from the schedd for longer than a lease. No process of its
// tasks may outlive that (P10). No attempt may begin before they are dead (P4), or at all
// if the job is held or removed meanwhile (P8).
func (h *cellHostPool) nodeIsCutOff() {
	g := h.newGate("clinging")
	id := h.submitJob(fmt.Sprintf("job \"clinging\" {\n  script = <<-END\n%s\n  END\n  lease = %q\n}",
		fmt.Sprintf(clingingScript, h.newTaskLog("clinging"), g.path), shortLease))
	h.awaitTrue("clinging runs", func() bool {
		return h.showTask(id).State == "running" && len(h.submitDetached()) > 10
	})
	first := h.showTask(id)
	held, removed := h.submitFencedArray("cut-off-held", "exec1"), h.submitFencedArray("cut-off-removed", "exec2")
	h.net.unplug(first.Node)
	cut := uptime()
	h.stopArray(held, "hold")
	h.stopArray(removed, "rm")
	h.awaitTrue("clinging runs on the other node", func() bool {
		now := h.showTask(id)
		return now.Attempt > first.Attempt && now.State == "running"
	})
	h.releaseArray(held)
	h.net.replug(first.Node)
	g.openGate()
	h.awaitTrue("clinging ends", func() bool { return h.showTask(id).State == "failed" })
	h.checkNoOverlap(first.Attempt, cut)
}

// processSample is an observation of a task's process.
type processSample struct {
	who           string
	attempt       int
	node          string
	uptimeSeconds float64 // seconds
}

func (h *cellHostPool) submitDetached() (all []processSample) {
	text, _ := os.ReadFile(h.hostPool.newTaskLog("clinging"))
	for line := range strings.Lines(string(text)) {
		var a processSample
		if _, err := fmt.Sscan(line, &a.who, &a.attempt, &a.node, &a.uptimeSeconds); err != nil {
			h.Errorf("clinging: %q: %v", line, err)
		}
		all = append(all, a)
	}
	return all
}

// checkNoOverlap checks that all processes of the first attempt were dead at the end of
// its lease. The lease was last renewed before the partition.
func (h *cellHostPool) checkNoOverlap(first int, cut float64) {
	last, next := map[string]float64{}, 0.0
	for _, a := range h.submitDetached() {
		if a.attempt == first {
			last[a.who] = max(last[a.who], a.uptimeSeconds)
		} else if next = cmp.Or(next, a.uptimeSeconds); a.attempt != first+1 {
			h.Errorf("clinging: attempt %d after %d", a.attempt, first)
		}
	}
	for _, who := range []string{"main", "child", "stray"} {
		after := time.Duration((last[who] - cut) * float64(time.Second)).Round(time.Millisecond)
		switch {
		case last[who] == 0:
			h.Errorf("clinging: its process %q has never lived", who)
		case after > shortLease+shortLease/100+deathDelay:
			h.Errorf("P10: the process %q lived for %v after the cut, and its lease is %v", who, after, shortLease)
		case last[who] >= next:
			h.Errorf("P4: the process %q was alive at %.2f, and the next attempt began at %.2f", who, last[who], next)
		}
		h.Logf("the process %q lived for %v after the cut", who, after)
	}
}

// uptime returns the seconds since the machine has booted.
func uptime() (up float64) {
	text, err := os.ReadFile("/proc/uptime")
	if _, scan := fmt.Sscan(string(text), &up); errors.Join(err, scan) != nil {
		panic(errors.Join(err, scan))
	}
	return up
}
