package idle

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ProgramSource detects the programs for which the owner needs the whole machine: a game,
// a screen recorder.
type ProgramSource struct {
	proc          string                // "/proc"
	names         func() []string       // returns the programs that the owner's file names
	isTaskProcess func(pid int) bool    // whether a process belongs to a task
	cache         map[int]cachedProcess // processes with such a name, by pid
}

type cachedProcess struct {
	name   string
	isTask bool
}

// NewPrograms returns the source. Names returns the programs' names, which may change at
// any time; ours reports whether a process belongs to a task, which may use any name.
func NewPrograms(names func() []string, ours func(pid int) bool) *ProgramSource {
	return &ProgramSource{proc: "/proc", names: names, isTaskProcess: ours}
}

// Name is the source's name.
func (p *ProgramSource) Name() string { return "programs" }

const (
	programScanInterval = 2 * time.Second
	maxComm             = 15 // bytes of a program's name that the kernel stores (TASK_COMM_LEN)
)

// Run checks the names of all processes every two seconds. The kernel could report each
// new process (the proc connector), but only to root, and during a compilation the
// reports would cost more than the scans.
func (p *ProgramSource) Run(ctx context.Context, tell func(SourceReading)) {
	runPeriodically(ctx, programScanInterval, func() { tell(p.readPrograms()) })
}

func (p *ProgramSource) readPrograms() SourceReading {
	s := SourceReading{Name: p.Name(), Health: Absent, Text: "the owner's file names none (exclusive)"}
	names := p.names()
	if len(names) == 0 {
		p.cache = nil
		return s
	}
	// If other users' processes are hidden, so is process 1.
	if _, err := os.ReadFile(filepath.Join(p.proc, "1", "comm")); err != nil {
		s.Health, s.Text = Broken, fmt.Sprintf(
			"processes of others cannot be seen (%v); run roost guard as root, or mount /proc without hidepid", err,
		)
		return s
	}
	s.Health = Healthy
	running := p.runningPrograms(names)
	if len(running) == 0 {
		s.Text = "none of " + joinNames(names) + " runs"
		return s
	}
	s.ExclusiveProgram, s.Text = true, joinNames(running)+" runs"
	return s
}

// runningPrograms lists which of the programs run outside tasks. Whether a process
// belongs to a task is determined once, as it does not change.
func (p *ProgramSource) runningPrograms(names []string) (found []string) {
	wanted := map[string]string{}
	for _, n := range names {
		wanted[n[:min(len(n), maxComm)]] = n
	}
	dir, err := os.Open(p.proc)
	if err != nil {
		return nil
	}
	defer dir.Close()
	entries, _ := dir.Readdirnames(-1)
	seen := map[int]cachedProcess{}
	for _, e := range entries {
		pid, err := strconv.Atoi(e)
		if err != nil {
			continue
		}
		text, _ := os.ReadFile(p.proc + "/" + e + "/comm")
		name, ok := wanted[strings.TrimSuffix(string(text), "\n")]
		if !ok {
			continue
		}
		was, known := p.cache[pid]
		if !known || was.name != name {
			was = cachedProcess{name, p.isTaskProcess(pid)}
		}
		seen[pid] = was
		if !was.isTask && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	p.cache = seen
	slices.Sort(found)
	return found
}

// joinNames joins the first few names.
func joinNames(names []string) string {
	const few = 5
	if len(names) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
	}
	return strings.Join(names, ", ")
}
