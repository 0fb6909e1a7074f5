package pmi

import (
	"strconv"
	"strings"
)

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
	isPMI2   bool // it speaks PMI-2
	closed   bool // the socket is closed, at either end
	input    []byte

	fenceThread string // the thread that waits in a fence; empty: it names none
}

// take cuts the first whole line or command off the input. bad says why there can be
// none.
func (r *rankState) take() (text string, ok bool, bad string) {
	if r.isPMI2 {
		text, ok, isBad := r.takeFrame()
		if isBad {
			bad = "a command whose length is none from 1 to " + strconv.Itoa(maxFrame)
		}
		return text, ok, bad
	}
	text, ok, tooLong := r.takeLine()
	if tooLong {
		bad = "a line of more than " + strconv.Itoa(maxLine) + " bytes"
	}
	return text, ok, bad
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
