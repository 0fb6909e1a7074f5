package idle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// SessionPresence is what the agent of one session says of its user. It is nothing but
// times and reasons.
type SessionPresence struct {
	Input       BootTime // when somebody was there last; 0: nothing in this session knows
	InUseReason string   // why the machine is in use though nobody touches it
	Game        bool     // GameMode is on
	Origin      string   // what knows: "GNOME", "the screen saver"
}

// presenceTimeout is how long a report of an agent holds. Agents report at every change
// and each presenceInterval.
const (
	presenceTimeout  = 30 * time.Second
	presenceInterval = 10 * time.Second
	maxAgents        = 64 // sessions whose agents are listened to
)

// SessionAgentSource hears from the agents that people run in their sessions, of what no
// keyboard of this machine shows: a remote desktop, a film, a game. They are optional,
// and the word of one user, who can make the machine less lent by it and, where it is all
// that speaks for the console, more.
type SessionAgentSource struct {
	mu           sync.Mutex
	presences    map[uint32]agentReport // by user
	input        BootTime
	consoleInput BootTime // the same, at the console
	changed      chan struct{}
}

type agentReport struct {
	user   string
	seated bool
	at     BootTime
	SessionPresence
}

// NewSessionAgents returns the source.
func NewSessionAgents() *SessionAgentSource {
	return &SessionAgentSource{presences: map[uint32]agentReport{}, changed: make(chan struct{}, 1)}
}

// Name is the source's name.
func (a *SessionAgentSource) Name() string { return "session agents" }

// Report takes in what an agent of a user says, who sits at the machine or does not.
func (a *SessionAgentSource) Report(uid uint32, user string, seated bool, p SessionPresence) {
	now := Now()
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

// Run tells what was reported, and forgets who reports no more.
func (a *SessionAgentSource) Run(ctx context.Context, tell func(SourceReading)) {
	tick := time.NewTicker(presenceInterval)
	defer tick.Stop()
	var published SourceReading
	for first := true; ; first = false {
		if s := a.combinedReading(Now()); first || s != published {
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

func (a *SessionAgentSource) combinedReading(now BootTime) SourceReading {
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
