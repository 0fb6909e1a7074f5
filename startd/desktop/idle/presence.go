package idle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/internal/boottime"
)

// SessionPresence is the report of one session's agent about its user. It contains only
// times and reasons.
type SessionPresence struct {
	Input       roost.BootTime // boot time of the last input; 0: unknown in this session
	InUseReason string         // why the machine is in use without input
	Game        bool           // GameMode is on
	Origin      string         // the program that knows: "GNOME", "the screen saver"
}

// presenceTimeout is how long a report of an agent is valid. Agents report each change,
// and otherwise every presenceInterval.
const (
	presenceTimeout  = 30 * time.Second
	presenceInterval = 10 * time.Second
	maxAgents        = 64 // bounds the sessions whose reports are used
)

// SessionAgentSource receives reports from the agents that users run in their sessions.
// Agents see what no local input device shows: a remote desktop, a film, a game. They are
// optional. A report is the unverified statement of one user, who can make the machine
// less available with it. Where agents alone cover the console a report can also make it
// more available.
type SessionAgentSource struct {
	mu           sync.Mutex
	presences    map[uint32]agentReport // by uid
	input        roost.BootTime
	consoleInput roost.BootTime // input at the console
	changed      chan struct{}
}

type agentReport struct {
	user   string
	seated bool
	at     roost.BootTime
	SessionPresence
}

// NewSessionAgents returns the source.
func NewSessionAgents() *SessionAgentSource {
	return &SessionAgentSource{presences: map[uint32]agentReport{}, changed: make(chan struct{}, 1)}
}

// Name is the source's name.
func (a *SessionAgentSource) Name() string { return "session agents" }

// Report records the report of a user's agent. Seated means that the user sits at the
// machine.
func (a *SessionAgentSource) Report(uid uint32, user string, seated bool, p SessionPresence) {
	now := boottime.Now()
	p.Input, p.InUseReason, p.Origin = min(max(p.Input, 0), now), printableText(p.InUseReason), printableText(p.Origin)
	a.mu.Lock()
	if _, ok := a.presences[uid]; ok || len(a.presences) < maxAgents {
		a.presences[uid] = agentReport{user, seated, now, p}
		a.input = max(a.input, p.Input)
		if seated {
			a.consoleInput = max(a.consoleInput, p.Input)
		}
	}
	a.mu.Unlock()
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

// Run publishes the reports, and drops those of agents that report no more.
func (a *SessionAgentSource) Run(ctx context.Context, tell func(SourceReading)) {
	tick := time.NewTicker(presenceInterval)
	defer tick.Stop()
	var published SourceReading
	for first := true; ; first = false {
		if s := a.combinedReading(boottime.Now()); first || s != published {
			published = s
			tell(s)
		}
		select {
		case <-ctx.Done():
			return
		case <-a.changed:
		case <-tick.C:
		}
	}
}

func (a *SessionAgentSource) combinedReading(now roost.BootTime) SourceReading {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := SourceReading{Name: a.Name(), Input: a.input, ConsoleInput: a.consoleInput,
		Text: "nobody runs one (roost session-agent)"}
	var uids []uint32
	for uid, r := range a.presences {
		if now-r.at > presenceTimeout {
			delete(a.presences, uid)
			continue
		}
		uids = append(uids, uid)
	}
	if len(uids) == 0 {
		return s
	}
	slices.Sort(uids)
	s.Health = Healthy
	var who []string
	for _, uid := range uids {
		r := a.presences[uid]
		if s.OwnerUseReason == "" && r.InUseReason != "" {
			s.OwnerUseReason = r.user + ": " + r.InUseReason
		}
		s.ExclusiveProgram = s.ExclusiveProgram || r.Game
		if r.Origin != "" && r.Input != 0 {
			if s.Coverage = max(s.Coverage, Terminal); r.seated {
				s.Coverage = Console
			}
			who = append(who, fmt.Sprintf("%s (%s)", r.user, r.Origin))
		} else {
			who = append(who, fmt.Sprintf("%s (whose desktop says nothing of idleness)", r.user))
		}
	}
	s.Text = strings.Join(who, ", ")
	return s
}
