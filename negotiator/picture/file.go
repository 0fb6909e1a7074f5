package picture

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/share"
)

// A checkpoint is lines of JSON, each one object with one field that says what it is, packed by gzip, whose sum finds what was damaged. The first line says
// what it is and of which version, the last how many there are: so one that was cut off between two lines is found, too.

// version is of the format that Write writes. It rises when an older Roost must not read what a newer one wrote; what that may skip needs no new one.
const version = 1

// Bounds on what is read, so that a file of nobody knows whom cannot fill the memory.
const (
	maxLine  = 64 << 20 // bytes
	maxLines = 10_000_000
)

// Checkpoint is a cell as it is written down.
type Checkpoint struct {
	Picture
	Ledger *ledger.Ledger
	Roost  string // the version that wrote it
	Epoch  uint64
	Leader string   // the node of the negotiator that wrote it
	Jobs   []Job    // of all schedds, if they were asked
	Silent []string // schedds that were asked about their jobs and did not answer

	Holds   map[share.Submitter]roost.Resources // by claims: what Used says
	Users   []share.Submitter                   // what Charged says
	Schedds map[string]bool                     // those of which Known says so
}

// line is one line: one of its fields is set.
type line struct {
	Head     *headRow       `json:"roost_cell_checkpoint,omitempty"`
	Ledger   []byte         `json:"ledger,omitempty"` // as negotiators keep it
	Machine  *machineRow    `json:"machine,omitempty"`
	Ask      *askRow        `json:"request,omitempty"`
	Promise  *promiseRow    `json:"promise,omitempty"`
	Drain    *drainRow      `json:"drain,omitempty"`
	Running  *runningRow    `json:"running,omitempty"`
	User     *userRow       `json:"submitter,omitempty"`
	Schedd   string         `json:"schedd,omitempty"`
	Licences map[string]int `json:"licences,omitempty"`
	Promised map[string]int `json:"promised_licences,omitempty"`
	Eviction *evictionRow   `json:"eviction,omitempty"`
	Start    *startRow      `json:"start,omitempty"`
	Job      *Job           `json:"job,omitempty"`
	Silent   string         `json:"silent_schedd,omitempty"`
	End      *endRow        `json:"end,omitempty"`
}

type headRow struct {
	Version int    `json:"version"`
	Roost   string `json:"roost"`
	At      int64  `json:"at"` // unix nanoseconds
	Epoch   uint64 `json:"epoch"`
	Leader  string `json:"leader"`
}

type endRow struct {
	Lines int `json:"lines"` // before this one
}

// lines are those of a checkpoint in their order, without the last.
func (c *Checkpoint) lines(yield func(line) bool) {
	ok := yield(line{Head: &headRow{version, c.Roost, c.Now.UnixNano(), c.Epoch, c.Leader}}) && yield(line{Ledger: c.Ledger.Save()})
	each := func(n int, at func(i int) line) {
		for i := 0; i < n && ok; i++ {
			ok = yield(at(i))
		}
	}
	each(len(c.Machines), func(i int) line { row := rowOf(c.Machines[i]); return line{Machine: &row} })
	each(len(c.Asks), func(i int) line { row := rowOfAsk(c.Asks[i]); return line{Ask: &row} })
	for _, name := range slices.Sorted(maps.Keys(c.Pending)) {
		list := c.Pending[name]
		each(len(list), func(i int) line { row := rowOfPromise(name, list[i]); return line{Promise: &row} })
	}
	each(len(c.Drains), func(i int) line { row := drainRow(c.Drains[i]); return line{Drain: &row} })
	each(len(c.Ran), func(i int) line { row := rowOfRunning(c.Ran[i]); return line{Running: &row} })
	users := c.users()
	each(len(users), func(i int) line { return line{User: &users[i]} })
	schedds := slices.Sorted(maps.Keys(c.Schedds))
	each(len(schedds), func(i int) line { return line{Schedd: schedds[i]} })
	if ok && len(c.Licences) > 0 {
		ok = yield(line{Licences: c.Licences})
	}
	if ok && len(c.Promised) > 0 {
		ok = yield(line{Promised: c.Promised})
	}
	each(len(c.Evicted), func(i int) line { return line{Eviction: &evictionRow{c.Evicted[i].At.UnixNano(), c.Evicted[i].Job}} })
	each(len(c.Starts), func(i int) line {
		s := c.Starts[i]
		return line{Start: &startRow{s.At, s.Machine, resources(s.Resources), s.Units}}
	})
	each(len(c.Jobs), func(i int) line { return line{Job: &c.Jobs[i]} })
	each(len(c.Silent), func(i int) line { return line{Silent: c.Silent[i]} })
}

// users are the submitters that hold, get, or are charged for something.
func (c *Checkpoint) users() (rows []userRow) {
	all := slices.Concat(slices.Collect(maps.Keys(c.Holds)), slices.Collect(maps.Keys(c.Granted)), c.Users)
	slices.SortFunc(all, share.Submitter.Compare)
	for _, who := range slices.Compact(all) {
		row := userRow{Owner: who.Owner, Group: who.Group, Used: resources(c.Holds[who]), Granted: resources(c.Granted[who])}
		if _, row.Charged = slices.BinarySearchFunc(c.Users, who, share.Submitter.Compare); row.Charged || row.Used != (resources{}) || row.Granted != (resources{}) {
			rows = append(rows, row)
		}
	}
	return rows
}

// Write writes a checkpoint.
func Write(w io.Writer, c *Checkpoint) error {
	z := gzip.NewWriter(w)
	e := json.NewEncoder(z)
	e.SetEscapeHTML(false)
	lines := 0
	var err error
	c.lines(func(l line) bool {
		lines++
		err = e.Encode(l)
		return err == nil
	})
	return errors.Join(err, e.Encode(line{End: &endRow{lines}}), z.Close())
}

// Read reads a checkpoint. The error says what is wrong with one that is damaged, cut off, of a newer version, or none at all: of kind roost.Invalid.
func Read(r io.Reader) (*Checkpoint, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, errForeign
	}
	return ReadText(z)
}

// Begins reports whether a text that was unpacked begins as a checkpoint does.
func Begins(text []byte) bool { return bytes.HasPrefix(text, []byte(`{"roost_cell_checkpoint":`)) }

// ReadText is Read of what was unpacked.
func ReadText(r io.Reader) (*Checkpoint, error) {
	c := &Checkpoint{Holds: map[share.Submitter]roost.Resources{}, Schedds: map[string]bool{}}
	c.Pending, c.Granted = map[string][]match.Promise{}, map[share.Submitter]roost.Resources{}
	c.Licences, c.Promised = map[string]int{}, map[string]int{}
	in := reader{text: bufio.NewReaderSize(r, 1<<20)}
	if err := in.lines(c); err != nil {
		return nil, err
	}
	return c, c.complete()
}

// errForeign is what a file gets that is something else.
var errForeign = fmt.Errorf("%w: it is no checkpoint of a cell: roost cell checkpoint writes one", roost.Invalid)

// reader reads lines.
type reader struct {
	text *bufio.Reader
	n    int
}

func (r *reader) lines(c *Checkpoint) error {
	for {
		text, err := r.line()
		if err != nil {
			return err
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil || r.n == 1 && l.Head == nil {
			if r.n == 1 {
				return errForeign
			}
			return fmt.Errorf("line %d: %w: it makes no sense: %w", r.n, roost.Invalid, err)
		}
		if l.End != nil {
			return r.end(l.End)
		}
		if err := c.take(&l); err != nil {
			return fmt.Errorf("line %d: %w", r.n, err)
		}
	}
}

// line is the next line.
func (r *reader) line() (text []byte, err error) {
	for {
		part, err := r.text.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case err == nil:
			r.n++
			if r.n > maxLines {
				return nil, fmt.Errorf("%w: it has more than %d lines", roost.Exhausted, maxLines)
			}
			return bytes.TrimSuffix(text, []byte("\n")), nil
		case errors.Is(err, bufio.ErrBufferFull) && len(text) <= maxLine:
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("line %d: %w: it has more than %d bytes", r.n+1, roost.Exhausted, maxLine)
		case r.n == 0:
			return nil, errForeign
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("%w: it is cut off after line %d; take another one", roost.Invalid, r.n)
		case errors.Is(err, gzip.ErrChecksum):
			return nil, fmt.Errorf("%w: it is damaged: its sum does not hold", roost.Invalid)
		default:
			return nil, fmt.Errorf("after line %d: %w: it is damaged: %w", r.n, roost.Invalid, err)
		}
	}
}

// end looks whether all is there, and nothing behind it.
func (r *reader) end(e *endRow) error {
	if e.Lines != r.n-1 {
		return fmt.Errorf("%w: it says that it has %d lines, and has %d", roost.Invalid, e.Lines, r.n-1)
	}
	switch _, err := r.text.ReadByte(); {
	case errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, gzip.ErrChecksum):
		return fmt.Errorf("%w: it is damaged: its sum does not hold", roost.Invalid)
	case err == nil:
		return fmt.Errorf("%w: there is something behind its end, in line %d", roost.Invalid, r.n+1)
	default:
		return fmt.Errorf("%w: it is cut off at its end; take another one", roost.Invalid)
	}
}

// take takes in one line. What it is a newer version may know.
func (c *Checkpoint) take(l *line) (err error) {
	switch {
	case l.Head != nil:
		if c.Roost, c.Epoch, c.Leader = l.Head.Roost, l.Head.Epoch, l.Head.Leader; l.Head.Version != version {
			return fmt.Errorf("%w: version %d of the format is not one that this Roost knows, which is %d; Roost %s wrote it", roost.Invalid, l.Head.Version, version, l.Head.Roost)
		}
		c.Now = time.Unix(0, l.Head.At)
	case l.Ledger != nil:
		c.Ledger, err = ledger.Load(l.Ledger)
	case l.Machine != nil:
		var m *match.Machine
		if m, err = l.Machine.machine(); err == nil {
			c.Machines = append(c.Machines, m)
		}
	case l.Ask != nil:
		var a *Ask
		if a, err = l.Ask.ask(); err == nil {
			c.Asks = append(c.Asks, a)
		}
	case l.Promise != nil:
		c.Pending[l.Promise.Machine] = append(c.Pending[l.Promise.Machine], l.Promise.promise())
	case l.Drain != nil:
		c.Drains = append(c.Drains, match.Drain(*l.Drain))
	case l.Running != nil:
		c.Ran = append(c.Ran, l.Running.running())
	case l.User != nil:
		c.takeUser(l.User)
	case l.Schedd != "":
		c.Schedds[l.Schedd] = true
	case l.Licences != nil:
		c.Licences = l.Licences
	case l.Promised != nil:
		c.Promised = l.Promised
	case l.Eviction != nil:
		c.Evicted = append(c.Evicted, Eviction{time.Unix(0, l.Eviction.At), l.Eviction.Job})
	case l.Start != nil:
		c.Starts = append(c.Starts, match.Start{At: l.Start.At, Machine: l.Start.Machine, Resources: roost.Resources(l.Start.Resources), Units: l.Start.Units})
	case l.Job != nil:
		c.Jobs = append(c.Jobs, *l.Job)
	case l.Silent != "":
		c.Silent = append(c.Silent, l.Silent)
	}
	return err
}

func (c *Checkpoint) takeUser(u *userRow) {
	who := share.Submitter{Group: u.Group, Owner: u.Owner}
	if u.Used != (resources{}) {
		c.Holds[who] = roost.Resources(u.Used)
	}
	if u.Granted != (resources{}) {
		c.Granted[who] = roost.Resources(u.Granted)
	}
	if u.Charged {
		c.Users = append(c.Users, who)
	}
}

// complete makes a picture of what was read.
func (c *Checkpoint) complete() error {
	if c.Ledger == nil {
		return fmt.Errorf("%w: there is no ledger in it", roost.Invalid)
	}
	slices.SortFunc(c.Machines, func(a, b *match.Machine) int { return strings.Compare(a.Name, b.Name) })
	for i, m := range c.Machines {
		if i > 0 && c.Machines[i-1].Name == m.Name {
			return fmt.Errorf("machine %s: %w: it is there twice", m.Name, roost.Invalid)
		}
	}
	slices.SortFunc(c.Asks, func(a, b *Ask) int { return a.Key.Compare(b.Key) })
	for i, a := range c.Asks {
		if i > 0 && c.Asks[i-1].Key == a.Key {
			return fmt.Errorf("request %d of schedd %s: %w: it is there twice", a.Key.ID, a.Key.Schedd, roost.Invalid)
		}
	}
	slices.SortFunc(c.Users, share.Submitter.Compare)
	c.Used = func(who share.Submitter) roost.Resources { return c.Holds[who] }
	c.Charged = func(yield func(share.Submitter) bool) {
		for _, who := range c.Users {
			if !yield(who) {
				return
			}
		}
	}
	c.Known = func(schedd string) bool { return c.Schedds[schedd] }
	c.Strangers = true
	return nil
}
