package idle

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// login is a session of logind as org.freedesktop.login1.Session tells of it (org.freedesktop.login1(5)).
type login struct {
	id, user, seat, kind, class, tty string
	active, remote, locked           bool
	idle                             bool    // the desktop says so
	idleSince                        Instant // when it said so last, or the contrary; 0: this desktop never does
}

// atSeat reports whether who is logged in sits at the machine.
func (s *login) atSeat() bool { return s.seat != "" && !s.remote }

// graphical reports whether the session has windows, so that its desktop may say whether somebody works there.
func (s *login) graphical() bool { return s.kind == "x11" || s.kind == "wayland" || s.kind == "mir" }

// person reports whether the session is somebody's who types into it, and no cron job's.
func (s *login) person() bool {
	if s.class != "greeter" && s.class != "lock-screen" && !strings.HasPrefix(s.class, "user") {
		return false
	}
	return s.graphical() || s.tty != ""
}

// inhibitor is what ListInhibitors of org.freedesktop.login1.Manager tells of one. Its fields are in the order of the wire.
type inhibitor struct {
	What, Who, Why, Mode string
	UID, PID             uint32
}

// blocksIdle reports whether the program says that the machine is in use though nobody touches it: a video call, a film, a talk.
func (i *inhibitor) blocksIdle() bool {
	return strings.HasPrefix(i.Mode, "block") && slices.Contains(strings.Split(i.What, ":"), "idle")
}

// loginBook is what is known of the sessions over time.
type loginBook struct {
	known               map[string]login // nil: nobody has looked yet
	input, consoleInput Instant
}

// see takes in all sessions as they are now.
//
// What a desktop says of its user's idleness is advice: many never say anything, others minutes late. It is therefore only believed where nobody watches the keyboard itself, which
// is so of a remote desktop, too. That somebody logged in, unlocked the screen or switched to his session is known for certain.
func (b *loginBook) see(sessions []login, now Instant) Sight {
	s := Sight{Name: logindName, Health: Well}
	next := map[string]login{}
	var who []string
	for _, l := range sessions {
		next[l.id] = l
		if !l.person() {
			continue
		}
		who = append(who, l.String())
		was, known := b.known[l.id]
		if b.known != nil && (!known || l.active && !was.active && l.atSeat() || was.locked && !l.locked) {
			b.touched(&l, now)
		}
		if !l.graphical() || l.idleSince == 0 {
			continue
		}
		switch {
		case l.atSeat() && l.active:
			s.Reach = Console
			believed := now
			if l.idle {
				believed = min(l.idleSince, now)
			}
			s.Believed = max(s.Believed, believed)
		case !l.atSeat() && !l.idle:
			b.touched(&l, now)
		}
	}
	b.known = next
	s.Input, s.ConsoleInput = b.input, b.consoleInput
	s.Text = "nobody is logged in"
	if len(who) > 0 {
		slices.Sort(who)
		s.Text = list(who)
	}
	return s
}

func (b *loginBook) touched(l *login, now Instant) {
	b.input = now
	if l.atSeat() {
		b.consoleInput = now
	}
}

func (s *login) String() string {
	where := "over the network"
	switch {
	case s.atSeat():
		where = "at " + s.seat
	case s.graphical():
		where = "at a remote desktop"
	}
	how := s.kind
	if s.atSeat() && !s.active {
		how += ", in the background"
	}
	if s.locked {
		how += ", locked"
	}
	if s.graphical() && s.idleSince == 0 {
		how += ", says nothing of idleness"
	} else if s.idle {
		how += ", idle"
	}
	return fmt.Sprintf("%s %s (%s)", plain(s.user), where, plain(how))
}

// inUse says why programs keep the machine from being idle; empty if none does.
func inUse(all []inhibitor, ours func(pid int) bool) string {
	for _, i := range all {
		if i.blocksIdle() && !ours(int(i.PID)) {
			return strings.TrimSuffix(plain(i.Who)+": "+plain(i.Why), ": ")
		}
	}
	return ""
}

// plain is a text of another program's, fit for a line of a terminal.
func plain(text string) string {
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
