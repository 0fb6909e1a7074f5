package cli

// escapes looks for what is meant for the program at the terminal and not for the shell behind it: a tilde and a point at the beginning of a line end the
// conversation, as with rlogin(1) and qsub of OpenPBS. A tilde and anything else is just that: to suspend the program here (Ctrl-Z there) would end the job,
// because nobody would answer for it.
type escapes struct {
	within bool // a line: no escape begins here
	tilde  bool // one was typed, and waits for what follows it
}

// The keys that begin a line anew.
const (
	ctrlC = 3
	ctrlU = 21
)

// take returns what goes to the shell of what was typed, and whether that is the end.
func (e *escapes) take(typed []byte) (send []byte, leave bool) {
	send = make([]byte, 0, len(typed)+1)
	for _, c := range typed {
		switch {
		case e.tilde && c == '.':
			return send, true
		case e.tilde:
			e.tilde = false
			send = append(send, '~')
		case c == '~' && !e.within:
			e.tilde = true
			continue
		}
		send = append(send, c)
		e.within = c != '\r' && c != '\n' && c != ctrlC && c != ctrlU
	}
	return send, false
}
