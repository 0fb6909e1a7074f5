package terminal

// EscapeFilter finds the escape in the input: a tilde and a point at the beginning of a
// line. It ends the conversation, as with rlogin(1) and qsub of OpenPBS. A tilde and
// anything else is just that: to suspend the program here (Ctrl-Z there) would end the
// job, because nobody would answer for it.
type EscapeFilter struct {
	midLine      bool // a line: no escape begins here
	tildePending bool // one was typed, and waits for what follows it
}

// The keys that begin a line anew.
const (
	keyCtrlC = 3
	keyCtrlU = 21
)

// FilterInput returns the part of the input that goes to the shell, and whether the
// escape ended it.
func (e *EscapeFilter) FilterInput(typed []byte) (send []byte, leave bool) {
	send = make([]byte, 0, len(typed)+1)
	for _, c := range typed {
		switch {
		case e.tildePending && c == '.':
			return send, true
		case e.tildePending:
			e.tildePending = false
			send = append(send, '~')
		case c == '~' && !e.midLine:
			e.tildePending = true
			continue
		}
		send = append(send, c)
		e.midLine = c != '\r' && c != '\n' && c != keyCtrlC && c != keyCtrlU
	}
	return send, false
}
