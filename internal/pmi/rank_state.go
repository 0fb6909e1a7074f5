package pmi

import "strings"

// RankPhase is how far a rank is.
type RankPhase uint8

// The phases of a rank. They only rise, but for a program that is initialised again after
// it was finalised.
const (
	Launched    RankPhase = iota
	Initialised           // it has called MPI_Init
	InBarrier             // it waits in its first barrier
	Running               // its first barrier is over
	Finalised
	Exited
)

// rankState is what a node knows of one of its ranks.
type rankState struct {
	phase    RankPhase
	spoke    bool // it has called init at least once
	waits    bool // in a barrier
	spawning bool // lines of a spawn follow, up to endcmd
	closed   bool // the socket is closed, at either end
	input    []byte
}

// takeLine cuts the first whole line off the input. tooLong is true when there can be
// none.
func (r *rankState) takeLine() (line string, ok, tooLong bool) {
	end := -1
	for i, c := range r.input {
		if c == '\n' {
			end = i
			break
		}
	}
	if end < 0 {
		return "", false, len(r.input) > maxLine
	}
	if end > maxLine {
		return "", false, true
	}
	line = strings.TrimRight(string(r.input[:end]), "\r")
	r.input = append(r.input[:0], r.input[end+1:]...)
	return line, true, false
}
