package idle

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/roost-batch/roost"
)

// loginSession contains the data of a logind session, from org.freedesktop.login1.Session
// (org.freedesktop.login1(5)).
type loginSession struct {
	id, user, seat, kind, class, tty string
	active, remote, locked           bool
	idle                             bool           // idle according to the desktop
	idleSince                        roost.BootTime // of the last change of idle; 0: this desktop never reports it
}

// isAtSeat reports whether the session's user sits at the machine.
func (s *loginSession) isAtSeat() bool { return s.seat != "" && !s.remote }

// isGraphical reports whether the session has windows, so that its desktop may report
// idleness.
func (s *loginSession) isGraphical() bool {
	return s.kind == "x11" || s.kind == "wayland" || s.kind == "mir"
}

// isPerson reports whether a person types into the session. Sessions of cron jobs are
// excluded.
func (s *loginSession) isPerson() bool {
	if s.class != "greeter" && s.class != "lock-screen" && !strings.HasPrefix(s.class, "user") {
		return false
	}
	return s.isGraphical() || s.tty != ""
}

// logindInhibitor is an element of the result of ListInhibitors of
// org.freedesktop.login1.Manager. Its fields are in wire order.
type logindInhibitor struct {
	What, Who, Why, Mode string
	UID, PID             uint32
}

// blocksIdle reports whether a program declares the machine in use although there is no
// input. Examples are a video call, a film, a talk.
func (i *logindInhibitor) blocksIdle() bool {
	return strings.HasPrefix(i.Mode, "block") && slices.Contains(strings.Split(i.What, ":"), "idle")
}

// sessionTracker records the sessions over time.
type sessionTracker struct {
	sessions            map[string]loginSession // nil: there was no update yet
	input, consoleInput roost.BootTime
}

// update processes the current list of all sessions.
//
// What a desktop reports about its user's idleness is a hint: many desktops never report
// it, others do so minutes late. So it only counts if nothing watches the input devices,
// which is also true for a remote desktop. A login, an unlocked screen, and a switch to a
// session are certain.
func (b *sessionTracker) update(sessions []loginSession, now roost.BootTime) SourceReading {
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
			s.IndirectInput = max(s.IndirectInput, believed)
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

func (b *sessionTracker) addInput(l *loginSession, now roost.BootTime) {
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

// inhibitReason returns why programs keep the machine from being idle, or "" if none
// does.
func inhibitReason(all []logindInhibitor, ours func(pid int) bool) string {
	for _, i := range all {
		if i.blocksIdle() && !ours(int(i.PID)) {
			return strings.TrimSuffix(printableText(i.Who)+": "+printableText(i.Why), ": ")
		}
	}
	return ""
}

// printableText makes a text of another program safe for a line on a terminal.
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
