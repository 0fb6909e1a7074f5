package jobstate

import (
	"fmt"
	"maps"
	"strconv"

	"github.com/roost-batch/roost/schedd/flow/graph"
)

// maxRetained bounds the bytes of lines of one flow that may not be in the file.
const maxRetained = 16 << 20

// Log makes the lines of one flow.
type Log struct {
	run      int                      // the run of which the beginning is in the log
	ended    bool                     // so is its end
	sequence int                      // of the newest attempt of a node
	attempts map[graph.NodeID]Attempt // that go on

	lines []string // not known to be in the file
	size  int      // bytes of these
	taken int      // lines that were taken
}

// Attempt is an attempt of a node.
type Attempt struct {
	Sequence uint32
	Job      uint64 // 0: it has none yet
}

// State is what a Log remembers, for a snapshot.
type State struct {
	Run, Sequence int
	Ended         bool
	Attempts      map[graph.NodeID]Attempt
	Lines         []string
}

// New returns a log without lines. Its first attempt has the number behind sequence.
func New(sequence int) *Log {
	return &Log{sequence: sequence, attempts: map[graph.NodeID]Attempt{}}
}

// Restore returns the log of a state.
func Restore(s State) *Log {
	l := &Log{run: s.Run, ended: s.Ended, sequence: s.Sequence, attempts: maps.Clone(s.Attempts)}
	if l.attempts == nil {
		l.attempts = map[graph.NodeID]Attempt{}
	}
	for _, line := range s.Lines {
		l.add(line)
	}
	return l
}

// State returns what the log remembers. It shares the lines.
func (l *Log) State() State {
	return State{Run: l.run, Sequence: l.sequence, Ended: l.ended, Attempts: maps.Clone(l.attempts),
		Lines: l.lines[:len(l.lines):len(l.lines)]}
}

// Begin says that a run of the flow has begun, unless the log has that.
func (l *Log) Begin(seconds int64, run int, flow uint64) {
	if run <= l.run {
		return
	}
	l.run, l.ended = run, false
	clear(l.attempts)
	l.add(fmt.Sprintf("%d INTERNAL *** DAGMAN_STARTED %d.0 ***", seconds, flow))
}

// End says that the run of the flow has ended, unless the log has that.
func (l *Log) End(seconds int64, code int) {
	if l.ended || l.run == 0 {
		return
	}
	l.ended = true
	l.add(fmt.Sprintf("%d INTERNAL *** DAGMAN_FINISHED %d ***", seconds, code))
}

// BeginAttempt gives an attempt of a node its number.
func (l *Log) BeginAttempt(node graph.NodeID) {
	l.sequence++
	l.attempts[node] = Attempt{Sequence: uint32(l.sequence)}
}

// SetJob says which job the attempt of a node has.
func (l *Log) SetJob(node graph.NodeID, job uint64) {
	a := l.attempts[node]
	a.Job = job
	l.attempts[node] = a
}

// Job returns the job of the attempt of a node as HTCondor writes it; empty: it has none.
func (l *Log) Job(node graph.NodeID) string {
	if job := l.attempts[node].Job; job != 0 {
		return TaskName(job, 0)
	}
	return ""
}

// TaskName is the name of a task as HTCondor writes it.
func TaskName(job uint64, index int) string {
	return strconv.FormatUint(job, 10) + "." + strconv.Itoa(index)
}

// EndAttempt forgets the number of an attempt.
func (l *Log) EndAttempt(node graph.NodeID) { delete(l.attempts, node) }

// HasAttempt reports whether a node has an attempt that goes on.
func (l *Log) HasAttempt(node graph.NodeID) bool { return l.attempts[node].Sequence != 0 }

// NodeEvent is a line about a node.
type NodeEvent struct {
	Seconds int64 // since 1970
	Node    graph.NodeID
	Name    string // of the node
	Event   string
	Detail  string // the id of a job, or an exit code; empty: there is none
	Tag     string // of the job, for the workflow engine; empty: it has none
}

// Add adds a line about a node.
func (l *Log) Add(e NodeEvent) {
	b := make([]byte, 0, 80)
	b = append(strconv.AppendInt(b, e.Seconds, 10), ' ')
	for _, word := range []string{e.Name, e.Event, e.Detail, e.Tag} {
		b = append(appendWord(b, word), ' ')
	}
	b = append(b, "- "...)
	l.add(string(strconv.AppendUint(b, uint64(l.attempts[e.Node].Sequence), 10)))
}

// appendWord adds a word, in which nothing ends it.
func appendWord(b []byte, word string) []byte {
	if word == "" {
		return append(b, '-')
	}
	for i := range len(word) {
		if c := word[i]; c <= ' ' || c == 0x7f {
			b = append(b, '_')
		} else {
			b = append(b, c)
		}
	}
	return b
}

func (l *Log) add(line string) {
	l.lines = append(l.lines, line)
	l.size += len(line)
	for l.size > maxRetained {
		l.Written(1)
	}
}

// Take returns the lines that were not taken before.
func (l *Log) Take() []string {
	lines := l.lines[l.taken:len(l.lines):len(l.lines)]
	l.taken = len(l.lines)
	return lines
}

// Written says that some more of the lines, the oldest ones, are in the file.
func (l *Log) Written(n int) {
	n = min(n, len(l.lines))
	for _, line := range l.lines[:n] {
		l.size -= len(line)
	}
	l.lines, l.taken = l.lines[n:], max(l.taken-n, 0)
	if len(l.lines) == 0 {
		l.lines = nil
	}
}
