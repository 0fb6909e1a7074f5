package e2e

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The pool of the cell test has two nodes of eight cores, and this many units of a
// concurrency limit.
const (
	coresOfNode           = 8
	concurrencyLimitUnits = 5
)

// batchScript is run by each task of a batch. Its lock detects two overlapping attempts,
// and its lines say which attempt ran when and where.
const batchScript = `exec 9>%[2]s.$ROOST_TASK_INDEX
flock -n 9 || { echo "overlap $ROOST_TASK_INDEX $ROOST_ATTEMPT 0 -" >> %[1]s; exit 99; }
echo "start $ROOST_TASK_INDEX $ROOST_ATTEMPT $(date +%%s%%N) $ROOST_NODE" >> %[1]s
i=0; while [ $i -lt 20 ]; do echo "line $i of $ROOST_TASK_INDEX"; i=$((i+1)); done
sleep 0.1
echo "end $ROOST_TASK_INDEX $ROOST_ATTEMPT $(date +%%s%%N) $ROOST_NODE" >> %[1]s`

// auditedArray is an array job whose tasks record when they began and ended. In every
// second array each task takes a unit of the concurrency limit.
type auditedArray struct{ id, name string }

const batchSize = 24

func (h *cellHostPool) submitArray(name string) auditedArray {
	h.Helper()
	limits := ""
	name = "batch-" + name
	if h.batches++; h.batches%2 == 0 {
		name, limits = name+"-licensed", `limits = ["program"]`
	}
	return auditedArray{h.submitJob(fmt.Sprintf(`job %q {
  script = <<-END
%s
  END
  count  = %d
  %s
}`, name, fmt.Sprintf(batchScript, h.newTaskLog(name), filepath.Join(h.home, "lock-"+name)), batchSize, limits)), name}
}

// taskLogLine is a line that a task has written.
type taskLogLine struct {
	what           string
	index, attempt int
	at             int64 // unix nanoseconds
	node           string
}

func (h *hostPool) taskLogLines(name string) (all []taskLogLine) {
	text, _ := os.ReadFile(h.newTaskLog(name))
	for line := range strings.Lines(string(text)) {
		var m taskLogLine
		if _, err := fmt.Sscan(line, &m.what, &m.index, &m.attempt, &m.at, &m.node); err != nil {
			h.Errorf("%s: %q: %v", name, line, err)
		}
		all = append(all, m)
	}
	return all
}

// awaitArray waits until a batch has run, at most a minute after the last fault (P9), and
// checks the guarantees. No execute node has failed, so each task has one attempt.
func (h *cellHostPool) awaitArray(b auditedArray) {
	h.Helper()
	state := ""
	h.awaitTrue(b.name+" ends (P9)", func() bool {
		state = h.showTask(b.id).State
		return state == "completed" || state == "failed"
	})
	if state != "completed" {
		h.printLogs()
		h.Fatalf("%s has %s", b.name, state)
	}
	h.checkRanOnce(b.name, batchSize)
	h.checkOutput(b, 0)
	h.checkOutput(b, batchSize-1)
}

// checkRanOnce checks that each of size tasks of a batch began once and ended once. It
// returns what they wrote.
func (h *hostPool) checkRanOnce(name string, size int) []taskLogLine {
	h.Helper()
	count := map[string]int{}
	all := h.taskLogLines(name)
	for _, m := range all {
		if m.what == "overlap" {
			h.Errorf("P4: two attempts of task %d of %s live at the same time", m.index, name)
		}
		count[fmt.Sprint(m.what, m.index)]++
	}
	for i := range size {
		if starts, ends := count[fmt.Sprint("start", i)], count[fmt.Sprint("end", i)]; starts != 1 || ends != 1 {
			h.Errorf("P3: task %d of %s began %d times and ended %d times", i, name, starts, ends)
		}
	}
	if len(all) != 2*size {
		h.Errorf("P3: the tasks of %s wrote %d lines, want %d", name, len(all), 2*size)
	}
	return all
}

// checkOutput checks that a task's output is complete at the submit node (P11).
func (h *cellHostPool) checkOutput(b auditedArray, index int) {
	var want strings.Builder
	for i := range 20 {
		fmt.Fprintf(&want, "line %d of %d\n", i, index)
	}
	name, host, _ := strings.Cut(b.id, ".")
	if got := h.mustAs("logs", fmt.Sprintf("%s[%d].%s", name, index, host)); got != want.String() {
		h.Errorf("P11: the output of task %d of %s: %q", index, b.name, got)
	}
}

// auditCell checks the whole cell at the end. Nodes and concurrency limits were never
// overcommitted, no claims were made by grants of different leaders in the wrong order,
// and the replicas agree.
func (h *cellHostPool) auditCell() {
	h.Helper()
	h.checkFences()
	h.checkCapacity()
	h.checkEpochs()
	h.awaitAgreement()
	h.checkUsage()
}

// checkCapacity checks that no node ever ran more tasks than it has cores (P5), and that
// the concurrency limit held.
func (h *cellHostPool) checkCapacity() {
	var changes []taskLogLine
	licensed := map[taskLogLine]bool{}
	ledgers, _ := filepath.Glob(filepath.Join(h.dir, "ledger-batch-*"))
	for _, path := range ledgers {
		name := strings.TrimPrefix(filepath.Base(path), "ledger-")
		for _, m := range h.taskLogLines(name) {
			changes = append(changes, m)
			licensed[m] = strings.HasSuffix(name, "-licensed")
		}
	}
	slices.SortFunc(changes, func(a, b taskLogLine) int { return int(a.at - b.at) })
	running, taken := map[string]int{}, 0
	for _, m := range changes {
		sign := 1
		if m.what != "start" {
			sign = -1
		}
		if running[m.node] += sign; running[m.node] > coresOfNode {
			h.Errorf("P5: %s ran %d tasks of a core each", m.node, running[m.node])
		}
		if licensed[m] {
			if taken += sign; taken > concurrencyLimitUnits {
				h.Errorf("%d licences were in use, and there are %d", taken, concurrencyLimitUnits)
			}
		}
	}
	h.Logf("%d tasks ran", len(changes)/2)
}

var (
	claimMade    = regexp.MustCompile(`msg="claim made" .*\bgrant=(\d+) epoch=(\d+)`)
	leadsPattern = regexp.MustCompile(`msg="this negotiator leads" .*\bepoch=(\d+)`)
)

// checkEpochs checks that no two leaders had the same epoch. Machines made claims by
// grants of leaders alone, each grant once, and none after a grant of a later leader.
func (h *cellHostPool) checkEpochs() {
	leader := map[uint64]string{}
	for _, name := range slices.Sorted(maps.Keys(h.nodes)) {
		for _, m := range leadsPattern.FindAllStringSubmatch(h.nodes[name].logText(), -1) {
			epoch, _ := strconv.ParseUint(m[1], 10, 64)
			if other := leader[epoch]; other != "" {
				h.Errorf("%s and %s led with epoch %d", other, name, epoch)
			}
			leader[epoch] = name
		}
	}
	claims, taken := 0, map[[2]string]string{}
	for _, name := range []string{"exec1", "exec2"} {
		var last uint64
		for _, m := range claimMade.FindAllStringSubmatch(h.nodes[name].logText(), -1) {
			epoch, _ := strconv.ParseUint(m[2], 10, 64)
			if other := taken[[2]string(m[1:])]; other != "" {
				h.Errorf("grant %s of epoch %d has become a claim on %s, and one on %s", m[1], epoch, other, name)
			}
			taken[[2]string(m[1:])] = name
			if claims++; epoch < last || leader[epoch] == "" {
				h.Errorf("%s made a claim by a grant of epoch %d, of %q, after one of %d", name, epoch,
					leader[epoch], last)
			}
			last = epoch
		}
	}
	if h.Logf("%d leaders, %d claims", len(leader), claims); claims == 0 || len(leader) < 3 {
		h.Errorf("that is too few to say anything")
	}
}

// awaitAgreement waits until all replicas have applied the same entry. Their states must
// then be equal (P7), usage bit for bit.
func (h *cellHostPool) awaitAgreement() {
	h.Helper()
	var last cellStatus
	h.awaitTrue("all replicas are at the same entry", func() bool {
		last = h.status("central1")
		for _, m := range last.Members {
			if m.At == 0 || m.At != last.Members[0].At {
				return false
			}
		}
		return len(last.Members) == 3
	})
	for _, m := range last.Members {
		if m.Digest != last.Members[0].Digest || m.Trouble != "" {
			h.Errorf("P7: after entry %d: %+v", m.At, last.Members)
		}
	}
}

// submitterRecord is a submitter in the output of roost shares.
type submitterRecord struct {
	User  string
	Hours float64 `json:"core_hours"`
	Real  float64 `json:"real_priority"`
}

// formerLog is a user who has used the pool before the test.
const formerLog = "former"

// checkUsage checks that usage was charged to the right user (P6).
func (h *cellHostPool) checkUsage() {
	var all struct{ Submitters []submitterRecord }
	text := h.mustAs("shares", "--json")
	err := json.NewDecoder(bytes.NewReader([]byte(text))).Decode(&all)
	all.Submitters = slices.DeleteFunc(all.Submitters, func(s submitterRecord) bool { return s.User == formerLog })
	if err != nil || len(all.Submitters) != 1 {
		h.Fatalf("P6: %v: %s", err, text)
	}
	least := h.steadyDuration.Hours() // of a task that was on one core all the time
	if s := all.Submitters[0]; s.Hours < 0.9*least || s.Hours > 2*coresOfNode*least+1 || s.Real < 0 {
		h.Errorf("P6: %+v, and one task alone ran for %.4f hours", s, least)
	}
}

// submitSteadyTask submits a task that writes a line at short intervals until its gate is
// open.
func (h *cellHostPool) submitSteadyTask(name string) (id string, g *taskGate) {
	h.Helper()
	g = h.newGate(name)
	id = h.submitJob(fmt.Sprintf(`job %q {
  script = "while [ ! -e %s ]; do date +%%s%%N >> %s; sleep 0.1; done; exit 7"
  lease  = "60s"
}`, name, g.path, h.newTaskLog(name)))
	h.awaitTrue(name+" runs", func() bool { return h.showTask(id).State == "running" })
	return id, g
}

// checkUndisturbed ends a steady task. It must be in its first attempt, with no gap in
// what it wrote.
func (h *cellHostPool) checkUndisturbed(id, name string, g *taskGate) {
	h.Helper()
	g.openGate()
	h.awaitTrue(name+" ends", func() bool { return h.showTask(id).State == "failed" })
	if got := h.showTask(id); got.Exit.Code != 7 || got.Exit.Cause != "exited" || got.Attempt != 1 {
		h.Errorf("%s ended with code %d, cause %s, attempt %d; want 7, exited, 1", name, got.Exit.Code, got.Exit.Cause,
			got.Attempt)
	}
	text, _ := os.ReadFile(h.newTaskLog(name))
	var first, last, longest int64
	for _, field := range strings.Fields(string(text)) {
		at, _ := strconv.ParseInt(field, 10, 64)
		if first = cmp.Or(first, at); last > 0 {
			longest = max(longest, at-last)
		}
		last = at
	}
	h.steadyDuration = time.Duration(last - first)
	if h.Logf("%s: the longest gap is %v", name, time.Duration(longest)); longest > int64(15*time.Second) {
		h.Errorf("%s was stopped for %v", name, time.Duration(longest))
	}
}
