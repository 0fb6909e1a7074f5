package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// countingProgram counts up to a number of steps, or until its gate opens. At each step
// it writes its count, the name of its host, and the time. It uses the wall clock,
// because the other clocks of a restored program continue from the time of the
// checkpoint. It keeps no file open that another attempt could have changed.
const countingProgram = `package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

func address() string {
	text, _ := os.ReadFile("/proc/net/fib_trie")
	last := ""
	for _, line := range strings.Split(string(text), "\n") {
		if _, a, ok := strings.Cut(line, "|-- 10.111.0."); ok {
			last = "10.111.0." + a
		} else if strings.Contains(line, "|--") {
			last = ""
		} else if last != "" && strings.Contains(line, "host LOCAL") {
			return last
		}
	}
	return "nowhere"
}

func main() {
	ledger, gate := os.Args[1], os.Args[2]
	steps, _ := strconv.Atoi(os.Args[3])
	n, sum := 0, 0
	for ; n < steps; n++ {
		if _, err := os.Stat(gate); err == nil {
			break
		}
		f, err := os.OpenFile(ledger, os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		where, at := address(), time.Now()
		for address() != where { // it was moved between the two
			where, at = address(), time.Now()
		}
		fmt.Fprintf(f, "%d %s %d\n", n+1, where, at.UnixNano())
		f.Close()
		v := (n + 1) * (n + 1) % 1000003
		sum += v
		fmt.Println("line", n+1, v)
		time.Sleep(25 * time.Millisecond)
	}
	fmt.Println("end", n, sum)
}
`

// countingTask is a task that counts.
type countingTask struct {
	id, name string
	gate     *taskGate
	// images are taken periodically, and not only at a vacate, which may happen without
	// one
	periodicImages bool
}

// endlessSteps is more steps than any test has time for.
const endlessSteps = 1 << 30

// submitCounter submits a task that counts to steps, on any machine, preferably a
// desktop.
func (h *desktopPool) submitCounter(name string, steps int, more string) *countingTask {
	h.Helper()
	c := &countingTask{name: name, gate: h.newGate(name)}
	c.id = h.submitJob(fmt.Sprintf(`job %q {
  command = [%q, %q, %q, "%d"]
  memory  = "64MiB"
  lease   = "10s"
  rank    = "TARGET.Name != \"server\""
  checkpoint { every = "never" }
  %s
}`, name, h.worker, h.newTaskLog(name), c.gate.path, steps, more))
	return c
}

// countingStep is a line that such a task has written.
type countingStep struct {
	n    int
	node string
	at   time.Time
}

func (h *desktopPool) countingSteps(c *countingTask) (all []countingStep) {
	text, _ := os.ReadFile(filepath.Join(h.dir, "ledger-"+c.name))
	for line := range strings.Lines(string(text)) {
		var s countingStep
		var at int64
		if _, err := fmt.Sscan(line, &s.n, &s.node, &at); err != nil {
			h.Errorf("%s: %q: %v", c.name, line, err)
			continue
		}
		s.at = time.Unix(0, at)
		all = append(all, s)
	}
	return all
}

// checkSteps checks what an ended task wrote. Its output must be complete and right
// (P11), and two attempts must never have counted at the same time (P4). It may have
// repeated only what a lost attempt had counted after its last image. It returns the
// number of repeated steps, and of machines that it ran on.
func (h *desktopPool) checkSteps(c *countingTask, events []*wire.JobEvent) (twice, machines int) {
	h.Helper()
	ended, losses, saved := 0, 0, map[uint32]bool{}
	for _, e := range events {
		switch e.GetWhat() {
		case "checkpointed":
			saved[e.GetAttempt()] = true
		case "vacated":
			if !saved[e.GetAttempt()] || c.periodicImages {
				losses++
			}
		case "completed":
			ended++
		case "lost", "checkpoint-failed", "checkpoint-bad", "unrestored":
			losses++
		}
	}
	if ended != 1 {
		h.Errorf("P3: %s has ended %d times\n%s", c.name, ended, jobLogText(events))
	}
	all := h.countingSteps(c)
	last, seen, written := countingStep{}, map[string]bool{}, map[countingStep]bool{}
	for _, s := range all {
		seen[s.node] = true
		switch {
		// otherwise the step was about to be written when the image was taken from which
		// two attempts have gone on
		case s.at.Before(last.at) && !written[s]:
			h.Errorf("P4: %s: step %d on %s at %s was written after step %d on %s at %s\n%s", c.name, s.n, s.node,
				clockText(s.at), last.n, last.node, clockText(last.at), jobLogText(events))
		case s.n <= last.n:
			twice += last.n - s.n + 1
			if losses--; losses < 0 {
				h.Errorf("%s: step %d on %s comes after step %d on %s, and no attempt was lost\n%s", c.name, s.n,
					s.node, last.n, last.node, jobLogText(events))
			}
		case s.n > last.n+1:
			h.Errorf("%s: step %d on %s comes after step %d on %s\n%s", c.name, s.n, s.node, last.n, last.node,
				jobLogText(events))
		}
		last, written[s] = s, true
	}
	var want bytes.Buffer
	sum := 0
	for i := 1; i <= last.n; i++ {
		sum += i * i % 1000003
		fmt.Fprintf(&want, "line %d %d\n", i, i*i%1000003)
	}
	fmt.Fprintf(&want, "end %d %d\n", last.n, sum)
	if got := h.mustAs("logs", c.id); got != want.String() {
		h.Errorf("P11: %s: its output has %d bytes, want %d; it ends with %q\n%s", c.name, len(got), want.Len(),
			got[max(len(got)-60, 0):], jobLogText(events))
	}
	return twice, len(seen)
}

// clockText formats a time as the logs do.
func clockText(at time.Time) string { return at.Format("15:04:05.000") }

// jobLogText formats a job's log.
func jobLogText(events []*wire.JobEvent) string {
	var b strings.Builder
	for _, e := range events {
		fmt.Fprintf(&b, "%s attempt %d: %s %s %s\n", clockText(time.Unix(0, e.GetTime())), e.GetAttempt(), e.GetWhat(),
			e.GetNode(), e.GetText())
	}
	return b.String()
}

// printDelays formats the median, the 99th percentile, and the longest of some durations.
func printDelays(all []time.Duration) string {
	if len(all) == 0 {
		return "never"
	}
	slices.Sort(all)
	at := func(percent int) time.Duration {
		return all[min(len(all)*percent/100, len(all)-1)].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("%d times, median %v, 99%% below %v, at most %v", len(all), at(50), at(99),
		all[len(all)-1].Round(100*time.Microsecond))
}
