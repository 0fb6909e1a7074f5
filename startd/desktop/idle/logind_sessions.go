package idle

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// loginSession is a session of logind as org.freedesktop.login1.Session tells of it
// (org.freedesktop.login1(5)).
type loginSession struct {
	id, user, seat, kind, class, tty string
	active, remote, locked           bool
	idle                             bool     // the desktop says so
	idleSince                        BootTime // when it said so last, or the contrary; 0: this desktop never does
}

// isAtSeat reports whether who is logged in sits at the machine.
func (s *loginSession) isAtSeat() bool { return s.seat != "" && !s.remote }

// isGraphical reports whether the session has windows, so that its desktop may say
// whether somebody works there.
func (s *loginSession) isGraphical() bool {
	return s.kind == "x11" || s.kind == "wayland" || s.kind == "mir"
}

// isPerson reports whether the session is somebody's who types into it, and no cron
// job's.
func (s *loginSession) isPerson() bool {
	if s.class != "greeter" && s.class != "lock-screen" && !strings.HasPrefix(s.class, "user") {
		return false
	}
	return s.isGraphical() || s.tty != ""
}

// logindInhibitor is what ListInhibitors of org.freedesktop.login1.Manager tells of one.
// Its fields are in the order of the wire.
type logindInhibitor struct {
	What, Who, Why, Mode string
	UID, PID             uint32
}

// blocksIdle reports whether the program says that the machine is in use though nobody
// touches it: a video call, a film, a talk.
func (i *logindInhibitor) blocksIdle() bool {
	return strings.HasPrefix(i.Mode, "block") && slices.Contains(strings.Split(i.What, ":"), "idle")
}

// sessionTracker is what is known of the sessions over time.
type sessionTracker struct {
	sessions            map[string]loginSession // nil: nobody has looked yet
	input, consoleInput BootTime
}

// update takes in all sessions as they are now.
//
// What a desktop says of its user's idleness is advice: many never say anything, others
// minutes late. It is therefore only believed where nobody watches the keyboard itself,
// which is so of a remote desktop, too. That somebody logged in, unlocked the screen or
// switched to his session is known for certain.
func (b *sessionTracker) update(sessions []loginSession, now BootTime) SourceReading {
	s := SourceReading{Name: logindName, Health: Healthy}
	next := map[string]loginSession{}
	var who []string
	for _, l := range sessions {
		next[l.id] = l
		if !l.isPerson() {
			continue
		}
		who = append(who, l.String())
		was, known := b.sessions[l.id]
		if b.sessions != nil && (!known || l.active && !was.active && l.isAtSeat() || was.locked && !l.locked) {
			b.addInput(&l, now)
		}
		if !l.isGraphical() || l.idleSince == 0 {
			continue
		}
		switch {
		case l.isAtSeat() && l.active:
			s.Coverage = Console
			believed := now
			if l.idle {
				believed = min(l.idleSince, now)
			}
			s.SecondHandInput = max(s.SecondHandInput, believed)
		case !l.isAtSeat() && !l.idle:
			b.addInput(&l, now)
		}
	}
	b.sessions = next
	s.Input, s.ConsoleInput = b.input, b.consoleInput
	s.Text = "nobody is logged in"
	if len(who) > 0 {
		slices.Sort(who)
		s.Text = joinNames(who)
	}
	return s
}

func (b *sessionTracker) addInput(l *loginSession, now BootTime) {
	b.input = now
	if l.isAtSeat() {
		b.consoleInput = now
	}
}

func (s *loginSession) String() string {
	where := "over the network"
	switch {
	case s.isAtSeat():
		where = "at " + s.seat
	case s.isGraphical():
		where = "at a remote desktop"
	}
	how := s.kind
	if s.isAtSeat() && !s.active {
		how += ", in the background"
	}
	if s.locked {
		how += ", locked"
	}
	if s.isGraphical() && s.idleSince == 0 {
		how += ", says nothing of idleness"
	} else if s.idle {
		how += ", idle"
	}
	return fmt.Sprintf("%s %s (%s)", printableText(s.user), where, printableText(how))
}

// inhibitReason says why programs keep the machine from being idle; empty if none does.
func inhibitReason(all []logindInhibitor, ours func(pid int) bool) string {
	for _, i := range all {
		if i.blocksIdle() && !ours(int(i.PID)) {
			return strings.TrimSuffix(printableText(i.Who)+": "+printableText(i.Why), ": ")
		}
	}
	return ""
}

// printableText is a text of another program's, fit for a line of a terminal.
func printableText(text string) string {
	const most = 80 // runes
	n := 0
	return strings.Map(func(r rune) rune {
		if n++; n > most {
			return -1
		}
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}
