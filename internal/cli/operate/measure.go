package operate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/roost-batch/roost/internal/cli/frame"
	"github.com/roost-batch/roost/internal/config"
	"github.com/roost-batch/roost/internal/master"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
)

// measurement is what was measured of a node. Times are in seconds.
type measurement struct {
	Seconds  float64       `json:"seconds"` // how long it took
	Machine  machineLoad   `json:"machine"`
	Daemons  []daemonUse   `json:"daemons"`
	Disks    []diskLatency `json:"disks"`
	problems []string      // what the schedd itself reports
	failures []finding     // what could not be measured
}

// machineLoad is what the machine is short of. Pressures are the part of the last ten
// seconds in which something waited, in percent (the kernel's accounting/psi).
type machineLoad struct {
	Cores          int     `json:"cores"`
	CPUPressure    float64 `json:"cpu_pressure"`
	DiskPressure   float64 `json:"disk_pressure"`
	MemoryPressure float64 `json:"memory_pressure"`
	AvailableBytes int64   `json:"available_bytes"` // of memory
	MemoryBytes    int64   `json:"memory_bytes"`
}

// daemonUse is what a daemon used while it was measured.
type daemonUse struct {
	Role     string `json:"role"`
	Name     string `json:"name,omitempty"` // of a startd
	Ready    bool   `json:"ready"`
	Restarts int    `json:"restarts"`
	LastExit string `json:"last_exit,omitempty"`
	log      string // path

	CPU         float64 `json:"cpu"`      // cores in use
	CPUWait     float64 `json:"cpu_wait"` // part of the time in which a thread waited for a CPU; may exceed 1
	PageFaults  int64   `json:"page_faults"`
	MemoryBytes int64   `json:"memory_bytes"`
	SwapBytes   int64   `json:"swap_bytes"`
	Files       int     `json:"files"`
	FileLimit   int     `json:"file_limit"` // 0: unknown

	Answer   *timeSpread `json:"answer,omitempty"` // of the schedd: time of one call that passes its loop
	Queued   uint64      `json:"queued_tasks,omitempty"`
	Running  uint64      `json:"running_tasks,omitempty"`
	OwnTimes []ownTime   `json:"own_times,omitempty"` // what it has measured itself since its start
}

func (d *daemonUse) title() string { return strings.TrimSpace(d.Role + " " + d.Name) }

// timeSpread is the median and the longest of some times.
type timeSpread struct {
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

func spreadOf(times []time.Duration) timeSpread {
	slices.Sort(times)
	return timeSpread{times[len(times)/2].Seconds(), times[len(times)-1].Seconds()}
}

// measure measures all daemons of a node for a time.
func measure(c *frame.Invocation, n *config.Node, state *master.NodeState, span time.Duration) (*measurement, error) {
	ctx, cancel := context.WithTimeout(c.Context, span)
	defer cancel()
	began := time.Now()
	before := map[int]processUse{}
	for _, d := range state.Daemons {
		before[d.PID], _ = readProcess("/proc", d.PID)
	}
	m := &measurement{Machine: readMachine("/proc")}
	m.Machine.Cores = runtime.NumCPU()
	var answer *timeSpread
	var health *scheddapi.HealthReply
	if n.Schedd != nil {
		var err error
		if answer, health, err = measureAnswers(ctx, c); err != nil {
			m.failures = append(m.failures, finding{levelFail, "schedd", "it does not answer: " + frame.ErrorText(err),
				"look at its log, and at what its disk and the CPU do below"})
		}
	}
	for _, dir := range dataDirectories(n) {
		d, err := measureDisk(ctx, dir)
		if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) {
			continue // a file system without files that have no name
		}
		if err != nil {
			m.failures = append(m.failures, finding{levelFail, dir, "nothing can be stored there: " + err.Error(),
				"make room, or give the directory back to the account of the daemons"})
			continue
		}
		m.Disks = append(m.Disks, d)
	}
	<-ctx.Done()
	if err := c.Context.Err(); err != nil {
		return nil, err
	}
	m.Seconds = time.Since(began).Seconds()
	for _, d := range state.Daemons {
		use := daemonUse{Role: d.Role, Name: d.Name, Ready: d.Ready, Restarts: d.Restarts, LastExit: d.LastExit,
			log: d.Log}
		if now, err := readProcess("/proc", d.PID); d.PID != 0 && err == nil {
			use.add(before[d.PID], now, m.Seconds)
		}
		if d.Role == "schedd" && health != nil {
			use.Answer, use.Queued, use.Running = answer, health.GetQueuedTasks(), health.GetRunningTasks()
			m.problems = health.GetProblems()
		}
		use.OwnTimes = readOwnTimes(c.Context, n, d)
		m.Daemons = append(m.Daemons, use)
	}
	return m, nil
}

// answerCalls is how often the schedd is called at most.
const answerCalls = 20

// measureAnswers measures how long the schedd takes to answer a call that passes its
// loop.
func measureAnswers(ctx context.Context, c *frame.Invocation) (*timeSpread, *scheddapi.HealthReply, error) {
	var times []time.Duration
	var last *scheddapi.HealthReply
	for range answerCalls {
		began := time.Now()
		err := c.CallSchedd(frame.AskTimeout, func(ctx context.Context, s *scheddapi.ScheddClient) (err error) {
			last, err = s.Health(ctx, &scheddapi.HealthRequest{})
			return err
		})
		if err != nil {
			return nil, nil, err
		}
		times = append(times, time.Since(began))
		if ctx.Err() != nil {
			break
		}
	}
	spread := spreadOf(times)
	return &spread, last, nil
}

// dataDirectories are the directories in which daemons of a node store what must not be
// lost.
func dataDirectories(n *config.Node) (dirs []string) {
	for _, name := range []string{"schedd", "negotiator", "cell-queue", "startd", "checkpoint-server", "accountant"} {
		if dir := filepath.Join(n.Dir, name); isDirectory(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

func isDirectory(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}
