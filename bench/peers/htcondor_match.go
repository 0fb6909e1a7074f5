package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const negotiatorLog = "/var/log/condor/NegotiatorLog"

// matchJobs lets one startd advertise all machines as its own slots, and kills it. So
// their ads and claims are real. The negotiator's log has the time of its cycle with the
// jobs; the claims fail afterwards.
func (h *htcondorSystem) matchJobs(ctx context.Context, s workSizes) (ans measureResult, err error) {
	ans.Values = map[string][]float64{}
	if err := h.advertise(ctx, s.Machines); err != nil {
		return ans, err
	}
	for range s.Matches {
		log, err := os.Stat(negotiatorLog)
		if err != nil {
			return ans, err
		}
		var text strings.Builder
		text.WriteString("executable = /bin/true\nshould_transfer_files = NO\n")
		for kind := range s.Kinds {
			fmt.Fprintf(&text, "request_memory = %d\nqueue %d\n", memoryOfKind(kind), s.Jobs/s.Kinds)
		}
		if err := h.writeFile("match.sub", text.String(), 0o644); err != nil {
			return ans, err
		}
		if _, err := h.runAsUser(ctx, "condor_submit", "-terse", h.filePath("match.sub")); err != nil {
			return ans, err
		}
		var c negotiationCycle
		tries := 0
		err = pollUntil(ctx, time.Second, "no cycle with the jobs", func() bool {
			if tries++; tries%10 == 0 {
				h.runAsAdmin(ctx, "condor_reschedule")
			}
			text, err := os.ReadFile(negotiatorLog)
			if err == nil && int64(len(text)) > log.Size() {
				c, err = lastNegotiationCycle(string(text[log.Size():]))
			}
			return err == nil && c.matched+c.rejected > 0
		})
		if err != nil {
			return ans, err
		}
		ans.addValue("match", c.duration)
		ans.Note = fmt.Sprintf("the negotiator's cycle; %d jobs matched", c.matched)
		if err := h.removeAllJobs(ctx); err != nil {
			return ans, err
		}
	}
	return ans, nil
}

// advertise starts the startd, waits until the collector has all its slots, and kills it.
func (h *htcondorSystem) advertise(ctx context.Context, machines int) error {
	argv := []string{"env", "_CONDOR_SEC_USE_FAMILY_SESSION=False", "_CONDOR_UPDATE_INTERVAL=86400",
		"_CONDOR_MAX_STARTD_LOG=500000000",
		fmt.Sprintf("_CONDOR_NUM_CPUS=%d", machines), fmt.Sprintf("_CONDOR_MEMORY=%d", machines*30000),
		fmt.Sprintf("_CONDOR_NUM_SLOTS=%d", machines)}
	for i, n := range machineGroups(machines) {
		argv = append(argv, fmt.Sprintf("_CONDOR_SLOT_TYPE_%d=cpus=1,memory=%d,disk=0.001%%", i+1, memorySizes[i]),
			fmt.Sprintf("_CONDOR_NUM_SLOTS_TYPE_%d=%d", i+1, n),
			fmt.Sprintf("_CONDOR_SLOT_TYPE_%d_PARTITIONABLE=False", i+1))
	}
	startd, err := h.startDaemon("startd", append(argv, "condor_startd", "-f", "-sock", "crowd")...)
	if err != nil {
		return err
	}
	err = pollUntil(ctx, time.Second, "the collector does not know all machines", func() bool {
		out, err := h.runAsUser(ctx, "condor_status", "-const", "true", "-af", "Name")
		return err == nil && strings.Count(out, "\n") >= machines
	})
	return errors.Join(err, startd.Process.Kill())
}

// negotiationCycle is one cycle of the negotiator.
type negotiationCycle struct {
	duration          float64 // seconds
	matched, rejected int
}

var logLine = regexp.MustCompile(`^\d\d/\d\d/\d\d (\d\d):(\d\d):(\d\d)\.(\d+) (?:\([^)]*\) )*(.*)$`)

// lastNegotiationCycle reads the last finished cycle with jobs in the negotiator's log.
// It returns a zero one if there is none.
func lastNegotiationCycle(log string) (last negotiationCycle, err error) {
	var now negotiationCycle
	began := -1.0
	for line := range strings.Lines(log) {
		f := logLine.FindStringSubmatch(strings.TrimSpace(line))
		if f == nil {
			continue
		}
		at, err := secondOfDay(f[1:5])
		if err != nil {
			return last, err
		}
		switch text := f[5]; {
		case strings.Contains(text, "Started Negotiation Cycle"):
			began, now = at, negotiationCycle{}
		case began < 0:
		case strings.Contains(text, "Successfully matched"):
			now.matched++
		case strings.Contains(text, "Rejected "):
			now.rejected++
		case strings.Contains(text, "Finished Negotiation Cycle"):
			if now.duration = at - began; now.duration < 0 {
				now.duration += 24 * 3600 // midnight
			}
			if now.matched+now.rejected > 0 {
				last = now
			}
			began = -1
		}
	}
	return last, nil
}

// secondOfDay sums hours, minutes, seconds and their decimals, in seconds.
func secondOfDay(f []string) (float64, error) {
	var total float64
	for i, weight := range []float64{3600, 60, 1} {
		n, err := strconv.Atoi(f[i])
		if err != nil {
			return 0, err
		}
		total += weight * float64(n)
	}
	part, err := strconv.ParseFloat("0."+f[3], 64)
	return total + part, err
}
