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

// Programs looks for the programs that the machine's owner wants to have it for himself: a game, a recorder of his screen.
type Programs struct {
	proc  string              // "/proc"
	names func() []string     // what he named, in his own file
	ours  func(pid int) bool  // whether a process is a task's
	seen  map[int]seenProcess // that have such a name
}

type seenProcess struct {
	name string
	ours bool
}

// NewPrograms returns the source. Names tells the programs' names, which may change at any time; ours reports whether a process is a task's, which may call itself
// what it likes.
func NewPrograms(names func() []string, ours func(pid int) bool) *Programs {
	return &Programs{proc: "/proc", names: names, ours: ours}
}

// Name is the source's name.
func (p *Programs) Name() string { return "programs" }

const (
	lookForPrograms = 2 * time.Second
	maxComm         = 15 // bytes of a program's name that the kernel keeps (TASK_COMM_LEN)
)

// Run looks every two seconds, through the names of all processes. The kernel would tell of each new one, too (the proc connector), but only root,
// and of each: a compilation would cost more than the looking does.
func (p *Programs) Run(ctx context.Context, tell func(Sight)) {
	repeat(ctx, lookForPrograms, func() { tell(p.look()) })
}

func (p *Programs) look() Sight {
	s := Sight{Name: p.Name(), Health: Absent, Text: "the owner's file names none (exclusive)"}
	names := p.names()
	if len(names) == 0 {
		p.seen = nil
		return s
	}
	// Where processes of others are hidden, so is that of the first user.
	if _, err := os.ReadFile(filepath.Join(p.proc, "1", "comm")); err != nil {
		s.Health, s.Text = Broken, fmt.Sprintf("processes of others cannot be seen (%v); run roost guard as root, or mount /proc without hidepid", err)
		return s
	}
	s.Health = Well
	running := p.running(names)
	if len(running) == 0 {
		s.Text = "none of " + list(names) + " runs"
		return s
	}
	s.Game, s.Text = true, list(running)+" runs"
	return s
}

// running lists which of the programs run as something else than a task. Whose a process is, is asked once: a task's stays a task's.
func (p *Programs) running(names []string) (found []string) {
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
	seen := map[int]seenProcess{}
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
		was, known := p.seen[pid]
		if !known || was.name != name {
			was = seenProcess{name, p.ours(pid)}
		}
		seen[pid] = was
		if !was.ours && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	p.seen = seen
	slices.Sort(found)
	return found
}

// list names a few of them.
func list(names []string) string {
	const few = 5
	if len(names) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
	}
	return strings.Join(names, ", ")
}
