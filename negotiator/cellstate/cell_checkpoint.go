package cellstate

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
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
)

// A checkpoint consists of lines of JSON, compressed by gzip, whose checksum detects
// damage. Each line is an object with one field that names its kind. The first line has
// the format and version, and the last one the number of lines, so a file that was
// truncated between two lines is detected, too.

// formatVersion is the version of the format that Write writes. It rises when older
// versions of Roost must not read newer files. Additions that they may ignore need no new
// version.
const formatVersion = 1

// Bounds on what is read, so that a file of unknown origin cannot fill the memory.
const (
	maxLine  = 64 << 20 // bytes
	maxLines = 10_000_000
)

// CellCheckpoint is a cell as it is written to a file.
type CellCheckpoint struct {
	CellState
	Ledger        *ledger.Ledger
	RoostVersion  string // Roost version that wrote it
	Epoch         uint64
	Leader        string   // node of the negotiator that wrote it
	Jobs          []JobRow // of all schedds, if they were asked
	SilentSchedds []string // schedds that were asked for their jobs and did not answer

	ClaimHolders      map[fairshare.Submitter]roost.Resources // resources by claims, for UsageByClaims
	ChargedSubmitters []fairshare.Submitter                   // for ChargedCores
	Schedds           map[string]bool                         // for KnownSchedds
}

// checkpointLine is one line: one of its fields is set.
type checkpointLine struct {
	Head          *checkpointHeader  `json:"roost_cell_checkpoint,omitempty"`
	Ledger        []byte             `json:"ledger,omitempty"` // in the negotiators' format
	Machine       *machineRow        `json:"machine,omitempty"`
	Request       *requestRow        `json:"request,omitempty"`
	PendingGrant  *pendingGrantRow   `json:"promise,omitempty"`
	Drain         *drainRow          `json:"drain,omitempty"`
	Running       *runningRow        `json:"running,omitempty"`
	Submitter     *submitterRow      `json:"submitter,omitempty"`
	Schedd        string             `json:"schedd,omitempty"`
	LimitsUsed    map[string]int     `json:"licences,omitempty"`
	LimitsGranted map[string]int     `json:"promised_licences,omitempty"`
	Eviction      *evictionRow       `json:"eviction,omitempty"`
	Start         *startRow          `json:"start,omitempty"`
	Job           *JobRow            `json:"job,omitempty"`
	SilentSchedd  string             `json:"silent_schedd,omitempty"`
	End           *checkpointTrailer `json:"end,omitempty"`
}

type checkpointHeader struct {
	Version      int    `json:"version"`
	RoostVersion string `json:"roost"`
	At           int64  `json:"at"` // unix nanoseconds
	Epoch        uint64 `json:"epoch"`
	Leader       string `json:"leader"`
}

type checkpointTrailer struct {
	Lines int `json:"lines"` // number of lines before this one
}

// lines yields the lines of a checkpoint in order, without the last.
func (c *CellCheckpoint) lines(yield func(checkpointLine) bool) {
	ok := yield(checkpointLine{Head: &checkpointHeader{formatVersion, c.RoostVersion, c.Now.UnixNano(), c.Epoch,
		c.Leader}}) && yield(checkpointLine{Ledger: c.Ledger.Save()})
	each := func(n int, at func(i int) checkpointLine) {
		for i := 0; i < n && ok; i++ {
			ok = yield(at(i))
		}
	}
	each(len(c.Machines), func(i int) checkpointLine {
		row := machineRowOf(c.Machines[i])
		return checkpointLine{Machine: &row}
	})
	each(len(c.Requests), func(i int) checkpointLine {
		row := requestRowOf(c.Requests[i])
		return checkpointLine{Request: &row}
	})
	for _, name := range slices.Sorted(maps.Keys(c.Pending)) {
		list := c.Pending[name]
		each(len(list), func(i int) checkpointLine {
			row := pendingGrantRowOf(name, list[i])
			return checkpointLine{PendingGrant: &row}
		})
	}
	each(len(c.Drains), func(i int) checkpointLine { row := drainRow(c.Drains[i]); return checkpointLine{Drain: &row} })
	each(len(c.LastRunning), func(i int) checkpointLine {
		row := runningRowOf(c.LastRunning[i])
		return checkpointLine{Running: &row}
	})
	users := c.submitterRows()
	each(len(users), func(i int) checkpointLine { return checkpointLine{Submitter: &users[i]} })
	schedds := slices.Sorted(maps.Keys(c.Schedds))
	each(len(schedds), func(i int) checkpointLine { return checkpointLine{Schedd: schedds[i]} })
	if ok && len(c.LimitsUsed) > 0 {
		ok = yield(checkpointLine{LimitsUsed: c.LimitsUsed})
	}
	if ok && len(c.LimitsGranted) > 0 {
		ok = yield(checkpointLine{LimitsGranted: c.LimitsGranted})
	}
	each(len(c.Evicted), func(i int) checkpointLine {
		return checkpointLine{Eviction: &evictionRow{c.Evicted[i].At.UnixNano(), c.Evicted[i].Job}}
	})
	each(len(c.RecentStarts), func(i int) checkpointLine {
		s := c.RecentStarts[i]
		return checkpointLine{Start: &startRow{s.At, s.Machine, resourceRow(s.Resources), s.Units}}
	})
	each(len(c.Jobs), func(i int) checkpointLine { return checkpointLine{Job: &c.Jobs[i]} })
	each(len(c.SilentSchedds), func(i int) checkpointLine { return checkpointLine{SilentSchedd: c.SilentSchedds[i]} })
}

// submitterRows returns the submitters that hold, get, or are charged for something.
func (c *CellCheckpoint) submitterRows() (rows []submitterRow) {
	all := slices.Concat(slices.Collect(maps.Keys(c.ClaimHolders)), slices.Collect(maps.Keys(c.UsageByGrants)),
		c.ChargedSubmitters)
	slices.SortFunc(all, fairshare.Submitter.Compare)
	for _, who := range slices.Compact(all) {
		row := submitterRow{Owner: who.Owner, Group: who.Group, UsageByClaims: resourceRow(c.ClaimHolders[who]),
			UsageByGrants: resourceRow(c.UsageByGrants[who])}
		if _, row.ChargedCores = slices.BinarySearchFunc(c.ChargedSubmitters, who,
			fairshare.Submitter.Compare); row.ChargedCores || row.UsageByClaims != (resourceRow{}) ||
			row.UsageByGrants != (resourceRow{}) {
			rows = append(rows, row)
		}
	}
	return rows
}

// Write writes a checkpoint.
func Write(w io.Writer, c *CellCheckpoint) error {
	z := gzip.NewWriter(w)
	e := json.NewEncoder(z)
	e.SetEscapeHTML(false)
	lines := 0
	var err error
	c.lines(func(l checkpointLine) bool {
		lines++
		err = e.Encode(l)
		return err == nil
	})
	return errors.Join(err, e.Encode(checkpointLine{End: &checkpointTrailer{lines}}), z.Close())
}

// Read reads a checkpoint. The error is of kind roost.Invalid. It says what is wrong if
// the file is damaged, truncated, of a newer version, or no checkpoint.
func Read(r io.Reader) (*CellCheckpoint, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, errNotCheckpoint
	}
	return ReadText(z)
}

// IsCheckpoint reports whether a decompressed text begins like a checkpoint.
func IsCheckpoint(text []byte) bool {
	return bytes.HasPrefix(text, []byte(`{"roost_cell_checkpoint":`))
}

// ReadText is Read for a decompressed text.
func ReadText(r io.Reader) (*CellCheckpoint, error) {
	c := &CellCheckpoint{ClaimHolders: map[fairshare.Submitter]roost.Resources{}, Schedds: map[string]bool{}}
	c.Pending, c.UsageByGrants = map[string][]match.PendingGrant{}, map[fairshare.Submitter]roost.Resources{}
	c.LimitsUsed, c.LimitsGranted = map[string]int{}, map[string]int{}
	in := checkpointReader{text: bufio.NewReaderSize(r, 1<<20)}
	if err := in.readLines(c); err != nil {
		return nil, err
	}
	return c, c.completeState()
}

// errNotCheckpoint is the error for other files.
var errNotCheckpoint = fmt.Errorf("%w: it is no checkpoint of a cell: roost cell checkpoint writes one", roost.Invalid)

// checkpointReader reads lines.
type checkpointReader struct {
	text       *bufio.Reader
	lineNumber int
}

func (r *checkpointReader) readLines(c *CellCheckpoint) error {
	for {
		text, err := r.nextLine()
		if err != nil {
			return err
		}
		var l checkpointLine
		if err := json.Unmarshal(text, &l); err != nil || r.lineNumber == 1 && l.Head == nil {
			if r.lineNumber == 1 {
				return errNotCheckpoint
			}
			return fmt.Errorf("line %d: %w: it makes no sense: %w", r.lineNumber, roost.Invalid, err)
		}
		if l.End != nil {
			return r.checkEnd(l.End)
		}
		if err := c.addLine(&l); err != nil {
			return fmt.Errorf("line %d: %w", r.lineNumber, err)
		}
	}
}

// nextLine returns the next line.
func (r *checkpointReader) nextLine() (text []byte, err error) {
	for {
		part, err := r.text.ReadSlice('\n')
		text = append(text, part...)
		switch {
		case err == nil:
			r.lineNumber++
			if r.lineNumber > maxLines {
				return nil, fmt.Errorf("%w: it has more than %d lines", roost.Exhausted, maxLines)
			}
			return bytes.TrimSuffix(text, []byte("\n")), nil
		case errors.Is(err, bufio.ErrBufferFull) && len(text) <= maxLine:
		case errors.Is(err, bufio.ErrBufferFull):
			return nil, fmt.Errorf("line %d: %w: it has more than %d bytes", r.lineNumber+1, roost.Exhausted, maxLine)
		case r.lineNumber == 0:
			return nil, errNotCheckpoint
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, fmt.Errorf("%w: it is cut off after line %d; take another one", roost.Invalid, r.lineNumber)
		case errors.Is(err, gzip.ErrChecksum):
			return nil, fmt.Errorf("%w: it is damaged: its checksum is wrong", roost.Invalid)
		default:
			return nil, fmt.Errorf("after line %d: %w: it is damaged: %w", r.lineNumber, roost.Invalid, err)
		}
	}
}

// checkEnd checks that all lines are there, and that nothing follows.
func (r *checkpointReader) checkEnd(e *checkpointTrailer) error {
	if e.Lines != r.lineNumber-1 {
		return fmt.Errorf("%w: it says that it has %d lines, and has %d", roost.Invalid, e.Lines, r.lineNumber-1)
	}
	switch _, err := r.text.ReadByte(); {
	case errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, gzip.ErrChecksum):
		return fmt.Errorf("%w: it is damaged: its checksum is wrong", roost.Invalid)
	case err == nil:
		return fmt.Errorf("%w: there is something behind its end, in line %d", roost.Invalid, r.lineNumber+1)
	default:
		return fmt.Errorf("%w: it is cut off at its end; take another one", roost.Invalid)
	}
}

// addLine adds one line. Unknown kinds, which a newer version may have, are ignored.
func (c *CellCheckpoint) addLine(l *checkpointLine) (err error) {
	switch {
	case l.Head != nil:
		if c.RoostVersion, c.Epoch, c.Leader = l.Head.RoostVersion, l.Head.Epoch,
			l.Head.Leader; l.Head.Version != formatVersion {
			return fmt.Errorf("%w: version %d of the format is not one that this Roost knows, which is %d; Roost %s "+
				"wrote it", roost.Invalid, l.Head.Version, formatVersion, l.Head.RoostVersion)
		}
		c.Now = time.Unix(0, l.Head.At)
	case l.Ledger != nil:
		c.Ledger, err = ledger.Load(l.Ledger)
	case l.Machine != nil:
		var m *match.Machine
		if m, err = l.Machine.machine(); err == nil {
			c.Machines = append(c.Machines, m)
		}
	case l.Request != nil:
		var a *PendingRequest
		if a, err = l.Request.pendingRequest(); err == nil {
			c.Requests = append(c.Requests, a)
		}
	case l.PendingGrant != nil:
		c.Pending[l.PendingGrant.Machine] = append(c.Pending[l.PendingGrant.Machine], l.PendingGrant.pendingGrant())
	case l.Drain != nil:
		c.Drains = append(c.Drains, match.MachineDrain(*l.Drain))
	case l.Running != nil:
		c.LastRunning = append(c.LastRunning, l.Running.running())
	case l.Submitter != nil:
		c.addSubmitter(l.Submitter)
	case l.Schedd != "":
		c.Schedds[l.Schedd] = true
	case l.LimitsUsed != nil:
		c.LimitsUsed = l.LimitsUsed
	case l.LimitsGranted != nil:
		c.LimitsGranted = l.LimitsGranted
	case l.Eviction != nil:
		c.Evicted = append(c.Evicted, TaskEviction{time.Unix(0, l.Eviction.At), l.Eviction.Job})
	case l.Start != nil:
		c.RecentStarts = append(c.RecentStarts, match.RecentStart{At: l.Start.At, Machine: l.Start.Machine,
			Resources: roost.Resources(l.Start.Resources), Units: l.Start.Units})
	case l.Job != nil:
		c.Jobs = append(c.Jobs, *l.Job)
	case l.SilentSchedd != "":
		c.SilentSchedds = append(c.SilentSchedds, l.SilentSchedd)
	}
	return err
}

func (c *CellCheckpoint) addSubmitter(u *submitterRow) {
	who := fairshare.Submitter{Group: u.Group, Owner: u.Owner}
	if u.UsageByClaims != (resourceRow{}) {
		c.ClaimHolders[who] = roost.Resources(u.UsageByClaims)
	}
	if u.UsageByGrants != (resourceRow{}) {
		c.UsageByGrants[who] = roost.Resources(u.UsageByGrants)
	}
	if u.ChargedCores {
		c.ChargedSubmitters = append(c.ChargedSubmitters, who)
	}
}

// completeState makes a cell state of what was read.
func (c *CellCheckpoint) completeState() error {
	if c.Ledger == nil {
		return fmt.Errorf("%w: there is no ledger in it", roost.Invalid)
	}
	slices.SortFunc(c.Machines, func(a, b *match.Machine) int { return strings.Compare(a.Name, b.Name) })
	for i, m := range c.Machines {
		if i > 0 && c.Machines[i-1].Name == m.Name {
			return fmt.Errorf("machine %s: %w: it is there twice", m.Name, roost.Invalid)
		}
	}
	slices.SortFunc(c.Requests, func(a, b *PendingRequest) int { return a.Key.Compare(b.Key) })
	for i, a := range c.Requests {
		if i > 0 && c.Requests[i-1].Key == a.Key {
			return fmt.Errorf("request %d of schedd %s: %w: it is there twice", a.Key.ID, a.Key.Schedd, roost.Invalid)
		}
	}
	slices.SortFunc(c.ChargedSubmitters, fairshare.Submitter.Compare)
	c.UsageByClaims = func(who fairshare.Submitter) roost.Resources { return c.ClaimHolders[who] }
	c.ChargedCores = func(yield func(fairshare.Submitter) bool) {
		for _, who := range c.ChargedSubmitters {
			if !yield(who) {
				return
			}
		}
	}
	c.KnownSchedds = func(schedd string) bool { return c.Schedds[schedd] }
	c.UnknownClaims = true
	return nil
}
