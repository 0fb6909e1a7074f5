// Package provider has the settings of providers: other batch systems from which a user's
// provisioner gets nodes. It says which values they may have, and what is wrong with
// others. Package config reads the file in which a user writes them.
package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// Kind is the kind of a provider: which programs submit, query and cancel there.
type Kind string

// The kinds.
const (
	Slurm  Kind = "slurm"
	PBS    Kind = "pbs"
	Condor Kind = "condor"
	// Grid Engine, whose programs have the names of those of PBS
	GridEngine Kind = "gridengine"
	Command    Kind = "command" // four programs of the user
)

// Kinds lists all kinds.
func Kinds() []Kind { return []Kind{Slurm, PBS, Condor, GridEngine, Command} }

// IsSingleNode reports whether allocations have one node, so that no gang can have one of
// its own.
func (k Kind) IsSingleNode() bool { return k == Condor || k == GridEngine }

// The defaults of settings.
const (
	DefaultMaxPilots = 20
	DefaultMaxQueued = 2
	DefaultWait      = 30 * time.Second
	DefaultIdle      = 5 * time.Minute
	// for how long a pilot waits for its first task
	DefaultFirstTask = time.Minute // or the idle time, which is longer
	// for how long an allocation may run without a pilot that has joined
	DefaultJoinWithin = 15 * time.Minute

	minMargin   = time.Minute
	maxWalltime = 366 * 24 * time.Hour
	maxNodes    = 100_000
)

// Settings describes a provider, as its user wrote it.
type Settings struct {
	Name string
	Kind Kind
	Node NodeShape
	// after which the outer system ends an allocation
	Walltime time.Duration
	// before the end of an allocation, in which its pilots run nothing
	Margin     time.Duration
	Wait       time.Duration // demand must be that old before anything is submitted
	Idle       time.Duration // after which a pilot without a task ends
	FirstTask  time.Duration // the same before its first task
	JoinWithin time.Duration
	NodesEach  int // nodes of an allocation, at most, unless a gang needs more
	MaxPilots  int
	MaxQueued  int // allocations
	// node-hours in any 24 hours; 0: no bound
	MaxNodeHours float64
	// tasks that have no walltime may run on its pilots, and may be ended with them
	WithoutWalltime bool
	Owners          []string // users whose tasks its pilots run; none: the one who made it

	Options   []string            // arguments for the program that submits
	Via       []string            // a command line in front of each program, such as ssh and a host
	Programs  map[string][]string // of kind command: by verb, the command line
	Directory string              // on the outer system: for the scripts, the token and output
	Program   string              // on the outer system: the path of roost; "": as PATH has it
	Before    string              // shell lines before the pilot
	After     string              // shell lines after it
	Wrap      []string            // a command line in front of the pilot
}

// NodeShape is what is known of the nodes of a provider before there is a pilot there.
type NodeShape struct {
	Resources  roost.Resources // an amount of 0 is not known
	Attributes string          // more attributes of machine ads, as an ad; "": none
}

// WithDefaults returns the settings with a default for each that is missing.
func (s Settings) WithDefaults() Settings {
	orDuration := func(d *time.Duration, value time.Duration) {
		if *d == 0 {
			*d = value
		}
	}
	orDuration(&s.Margin, max(minMargin, s.Walltime/50))
	orDuration(&s.Wait, DefaultWait)
	orDuration(&s.Idle, min(DefaultIdle, max(s.Walltime, time.Second)))
	orDuration(&s.FirstTask, min(max(DefaultFirstTask, s.Idle), max(s.Walltime, time.Second)))
	orDuration(&s.JoinWithin, DefaultJoinWithin)
	orInt := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	orInt(&s.NodesEach, 1)
	orInt(&s.MaxPilots, max(DefaultMaxPilots, s.NodesEach))
	orInt(&s.MaxQueued, DefaultMaxQueued)
	return s
}

// SettingProblem is what is wrong with a setting, and what to do.
type SettingProblem struct {
	Setting string // its name in the file
	Text    string
	Remedy  string
}

func (p SettingProblem) Error() string { return p.Setting + ": " + p.Text + "; " + p.Remedy }

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// Check returns what is wrong with settings that have their defaults.
func (s *Settings) Check() (problems []SettingProblem) {
	bad := func(wrong bool, setting, remedy, format string, args ...any) {
		if wrong {
			problems = append(problems, SettingProblem{setting, fmt.Sprintf(format, args...), remedy})
		}
	}
	bad(!nameForm.MatchString(s.Name), "provider", "write up to 32 small letters, digits, - and _",
		"%q cannot be the name of a provider", s.Name)
	s.checkKind(bad)
	bad(s.Walltime <= 0, "walltime", `write how long an allocation lasts, as in walltime = "12h"`,
		"each provider needs one")
	bad(s.Walltime > maxWalltime, "walltime", "write 366d at most", "%s is too long", SpanText(s.Walltime))
	bad(s.Walltime > 0 && s.Walltime < s.Margin+time.Minute, "margin",
		"let the walltime be a minute longer than the margin, at least",
		"the margin is %s, and an allocation lasts %s: there is no time left for a task", SpanText(s.Margin),
		SpanText(s.Walltime))
	for _, d := range []struct {
		setting string
		value   time.Duration
	}{{"margin", s.Margin}, {"wait", s.Wait}, {"idle", s.Idle}, {"first_task", s.FirstTask},
		{"join_within", s.JoinWithin}} {
		bad(d.value < 0, d.setting, "write a length of time", "%s is below 0", d.value)
	}
	bad(s.MaxPilots < 1 || s.MaxPilots > maxNodes, "max_pilots", "write 1 to 100000", "%d is no number of pilots",
		s.MaxPilots)
	bad(s.NodesEach < 1 || s.NodesEach > s.MaxPilots, "nodes_each", "write 1 to max_pilots",
		"allocations of %d nodes, and %d pilots at most, do not fit together", s.NodesEach, s.MaxPilots)
	bad(s.MaxQueued < 1 || s.MaxQueued > maxNodes, "max_queued", "write 1 or more", "%d allocations cannot wait",
		s.MaxQueued)
	bad(s.MaxNodeHours < 0, "max_node_hours", "write a number of hours, or leave it out", "%g is below 0",
		s.MaxNodeHours)
	bad(s.MaxNodeHours > 0 && s.MaxNodeHours < s.Walltime.Hours(), "max_node_hours",
		"let it be the walltime of one node, at least",
		"one node for its walltime of %s is more than %g node-hours: nothing would be submitted", SpanText(s.Walltime),
		s.MaxNodeHours)
	bad(s.Directory != "" && !strings.HasPrefix(s.Directory, "/") && !strings.HasPrefix(s.Directory, "~/"),
		"directory", "write a path from / or ~/", "%q is relative", s.Directory)
	_, err := s.Node.ParseAttributes()
	bad(err != nil, "attributes", "write them as NAME = value, as in a machine's ad", "%v", err)
	r := s.Node.Resources
	bad(r.IsNegative(), "node", "write positive amounts", "%v is below 0", r)
	return problems
}

// CommandVerbs are the programs of kind command.
func CommandVerbs() []string { return []string{"submit", "status", "cancel", "facts"} }

func (s *Settings) checkKind(bad func(wrong bool, setting, remedy, format string, args ...any)) {
	known := slices.Contains(Kinds(), s.Kind)
	bad(!known, "kind", "write slurm, pbs, condor, gridengine or command; others, such as clouds, are reached by "+
		"four programs of kind command", "there is no kind %q", s.Kind)
	if !known {
		return
	}
	bad(s.Kind.IsSingleNode() && s.NodesEach > 1, "nodes_each", "write 1, or leave it out",
		"allocations of kind %s have one node", s.Kind)
	bad(s.Kind != Command && len(s.Programs) > 0, "programs", `write kind = "command", or leave it out`,
		"kind %s has its own programs", s.Kind)
	for verb := range s.Programs {
		bad(!slices.Contains(CommandVerbs(), verb), "programs", "write submit, status, cancel and facts",
			"there is no program %q", verb)
	}
	if s.Kind != Command {
		return
	}
	for _, verb := range CommandVerbs() {
		bad(len(s.Programs[verb]) == 0, "programs", `write its command line, as in `+verb+` = ["./my-`+verb+`"]`,
			"there is no program to %s", verb)
	}
}

// SpanText writes a length of time as a setting may have it: "12h", "1m30s", "2d".
func SpanText(d time.Duration) string {
	if d < time.Second {
		return d.String()
	}
	var b strings.Builder
	for _, u := range []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "m"}, {time.Second, "s"}} {
		if n := d / u.size; n > 0 {
			fmt.Fprintf(&b, "%d%s", n, u.name)
			d -= n * u.size
		}
	}
	return b.String()
}

// ParseAttributes returns the attributes that the settings add to the ads of nodes.
func (n *NodeShape) ParseAttributes() (*classad.Ad, error) {
	if strings.TrimSpace(n.Attributes) == "" {
		return classad.New(), nil
	}
	return classad.Parse(n.Attributes)
}

// IsSized reports whether the settings say how large a node is.
func (n *NodeShape) IsSized() bool { return n.Resources.CPU > 0 && n.Resources.Memory > 0 }

// FitsTime reports whether tasks end before a pilot that has so much time left.
func (s *Settings) FitsTime(walltime, left time.Duration) bool {
	if walltime == 0 {
		return s.WithoutWalltime
	}
	return walltime+s.Margin <= left
}

// ShapeDigest identifies the settings that decide what the nodes are like.
func (s *Settings) ShapeDigest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %v %q %q", s.Kind, s.Node, s.Options, s.Via))
	return hex.EncodeToString(sum[:8])
}
