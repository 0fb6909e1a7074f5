package idle

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// Presence is what the agent of one session says of its user. It is nothing but times and reasons.
type Presence struct {
	Input Instant // when somebody was there last; 0: nothing in this session knows
	Busy  string  // why the machine is in use though nobody touches it
	Game  bool    // GameMode is on
	By    string  // what knows: "GNOME", "the screen saver"
}

// presenceLasts is how long a report of an agent holds. Agents report at every change and each presenceEvery.
const (
	presenceLasts = 30 * time.Second
	presenceEvery = 10 * time.Second
	maxAgents     = 64 // sessions whose agents are listened to
)

// SessionAgents hears from the agents that people run in their sessions, of what no keyboard of this machine shows: a remote desktop, a film, a game. They are optional,
// and the word of one user, who can make the machine less lent by it and, where it is all that speaks for the console, more.
type SessionAgents struct {
	mu    sync.Mutex
	known map[uint32]agentReport // by user
	input Instant
	here  Instant // the same, at the console
	news  chan struct{}
}

type agentReport struct {
	user   string
	seated bool
	at     Instant
	Presence
}

// NewSessionAgents returns the source.
func NewSessionAgents() *SessionAgents {
	return &SessionAgents{known: map[uint32]agentReport{}, news: make(chan struct{}, 1)}
}

// Name is the source's name.
func (a *SessionAgents) Name() string { return "session agents" }

// Report takes in what an agent of a user says, who sits at the machine or does not.
func (a *SessionAgents) Report(uid uint32, user string, seated bool, p Presence) {
	now := Now()
	p.Input, p.Busy, p.By = min(max(p.Input, 0), now), plain(p.Busy), plain(p.By)
	a.mu.Lock()
	if _, ok := a.known[uid]; ok || len(a.known) < maxAgents {
		a.known[uid] = agentReport{user, seated, now, p}
		a.input = max(a.input, p.Input)
		if seated {
			a.here = max(a.here, p.Input)
		}
	}
	a.mu.Unlock()
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// Run tells what was reported, and forgets who reports no more.
func (a *SessionAgents) Run(ctx context.Context, tell func(Sight)) {
	tick := time.NewTicker(presenceEvery)
	defer tick.Stop()
	var told Sight
	for first := true; ; first = false {
		if s := a.look(Now()); first || s != told {
			told = s
			tell(s)
		}
		select {
		case <-ctx.Done():
			return
		case <-a.news:
		case <-tick.C:
		}
	}
}

func (a *SessionAgents) look(now Instant) Sight {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := Sight{Name: a.Name(), Input: a.input, ConsoleInput: a.here, Text: "nobody runs one (roost session-agent)"}
	var uids []uint32
	for uid, r := range a.known {
		if now-r.at > presenceLasts {
			delete(a.known, uid)
			continue
		}
		uids = append(uids, uid)
	}
	if len(uids) == 0 {
		return s
	}
	slices.Sort(uids)
	s.Health = Well
	var who []string
	for _, uid := range uids {
		r := a.known[uid]
		if s.Busy == "" && r.Busy != "" {
			s.Busy = r.user + ": " + r.Busy
		}
		s.Game = s.Game || r.Game
		if r.By != "" && r.Input != 0 {
			if s.Reach = max(s.Reach, Terminal); r.seated {
				s.Reach = Console
			}
			who = append(who, fmt.Sprintf("%s (%s)", r.user, r.By))
		} else {
			who = append(who, fmt.Sprintf("%s (whose desktop says nothing of idleness)", r.user))
		}
	}
	s.Text = strings.Join(who, ", ")
	return s
}
