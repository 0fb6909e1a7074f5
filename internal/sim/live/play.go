package live

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
	"github.com/roost-batch/roost/negotiator/share"
)

// Lengths is how long tasks are taken to run.
type Lengths uint8

// The lengths. Where one is not known the other is taken; a task of which nobody knows either is taken to run for ever.
const (
	Asked     Lengths = iota // as long as their walltimes let them
	Predicted                // as long as tasks like them took
)

// worklife is how old a claim may be to get another task when one has ended, in seconds: as schedds have it (dispatch.Options).
const worklife = 60

// maxEvents bounds a play.
const maxEvents = 5_000_000

// Start is so many units of a request that started on a machine.
type Start struct {
	At      int64 // unix seconds
	Key     match.Key
	Machine string
	Units   int
	Again   bool // on a claim that was there, without the leader
}

// Eviction is a claim that had to go.
type Eviction struct {
	At      int64
	Machine string
	Claim   match.Claim
	For     share.Submitter // whose task gets the room; none: its machine was taken away
	Why     string
}

// Play is a cell that goes on from a checkpoint, with no new jobs.
type Play struct {
	*picture.Checkpoint
	index
	Starts    []Start
	Evictions []Eviction
	Endless   int // tasks of which nobody knows when they end: of those that run at first, and of those that have started since
	Events    int

	lengths Lengths
	now     int64
	ends    ends
	of      map[match.ClaimKey]*hold
	at      map[string]int // machines, by name
	next    uint64         // claim
	began   map[match.Key]int
	started int // units, of all requests
	total   roost.Resources
	matcher *match.Matcher
	digest  []byte
}

// hold is a claim that is under way.
type hold struct {
	ask  *picture.Ask // nil: nobody knows
	made int64
	ends int64 // 0: nobody knows
}

// NewPlay begins a play. What is promised, and what is about to leave, is taken to have come and gone.
func NewPlay(of *picture.Checkpoint, lengths Lengths) (*Play, error) {
	c, err := clone(of)
	if err != nil {
		return nil, err
	}
	p := &Play{
		Checkpoint: c, index: newIndex(c), lengths: lengths, now: c.Now.Unix(), of: map[match.ClaimKey]*hold{}, at: map[string]int{}, next: 1 << 62,
		began: map[match.Key]int{}, matcher: match.NewMatcher(),
	}
	for i, m := range c.Machines {
		p.at[m.Name] = i
	}
	p.settle()
	return p, nil
}

// Task is one that runs.
type Task struct {
	Machine string
	Claim   *match.Claim
	Ask     *picture.Ask  // of whose request it is; nil: nobody knows
	Left    time.Duration // for which it runs yet; 0: nobody knows
}

// Tasks are those that run, in the order of the machines. A claim on which nothing is known to run is none.
func (p *Play) Tasks() (all []Task) {
	for _, m := range p.Machines {
		for i := range m.Claims {
			c := &m.Claims[i]
			h := p.of[match.ClaimKey{Machine: m.Name, ID: c.ID}]
			if h == nil || h.ask == nil && c.JobName() == "" {
				continue
			}
			t := Task{Machine: m.Name, Claim: c, Ask: h.ask}
			if h.ends > 0 {
				t.Left = time.Duration(max(h.ends-p.now, 1)) * time.Second
			}
			all = append(all, t)
		}
	}
	return all
}

// Length is how long a task of a request runs that has not begun; 0: nobody knows.
func (p *Play) Length(a *picture.Ask) time.Duration { return time.Duration(p.length(a)) * time.Second }

// Now is the play's clock.
func (p *Play) Now() time.Time { return time.Unix(p.now, 0) }

// Began is how many units of a request have started.
func (p *Play) Began(k match.Key) int { return p.began[k] }

// Digest is of all that happened, in its order: two plays with the same are the same.
func (p *Play) Digest() uint64 {
	h := fnv.New64a()
	h.Write(p.digest)
	return h.Sum64()
}

// note adds to the digest.
func (p *Play) note(kind byte, machine string, n uint64) {
	p.Events++
	p.digest = append(p.digest, kind)
	p.digest = binary.LittleEndian.AppendUint64(p.digest, uint64(p.now))
	p.digest = append(p.digest, machine...)
	p.digest = binary.LittleEndian.AppendUint64(p.digest, n)
	if len(p.digest) > 1<<16 {
		p.digest = binary.LittleEndian.AppendUint64(p.digest[:0], p.Digest())
	}
}

// settle makes of what is under way what it is about to be.
func (p *Play) settle() {
	for i, m := range p.Machines {
		p.total = p.total.Add(m.Total)
		p.Machines[i] = p.settled(m)
	}
	p.Pending, p.Granted, p.Promised = map[string][]match.Promise{}, map[share.Submitter]roost.Resources{}, map[string]int{}
	p.Holds, p.Licences = map[share.Submitter]roost.Resources{}, map[string]int{}
	for _, m := range p.Machines {
		for i := range m.Claims {
			p.account(&m.Claims[i], 1)
		}
	}
	p.Charged = func(yield func(share.Submitter) bool) {
		for _, who := range slices.SortedFunc(maps.Keys(p.Holds), share.Submitter.Compare) {
			if !yield(who) {
				return
			}
		}
	}
}

// settled is a machine whose leaving claims have left, whose heirs have what they wait for, and to which what was promised has come.
func (p *Play) settled(m *match.Machine) *match.Machine {
	var leave []uint64
	for i := range m.Claims {
		if c := &m.Claims[i]; c.Leaving || c.Taken {
			leave = append(leave, c.ID)
			p.again(c)
		}
	}
	for _, one := range p.Pending[m.Name] {
		for _, id := range one.Victims {
			if i := slices.IndexFunc(m.Claims, func(c match.Claim) bool { return c.ID == id }); i >= 0 && !slices.Contains(leave, id) {
				leave = append(leave, id)
				p.again(&m.Claims[i])
			}
		}
	}
	heirs := m.Heirs
	if len(leave)+len(heirs)+len(p.Pending[m.Name]) == 0 {
		p.adopt(m)
		return m
	}
	next, err := m.Turnover(leave, heirs...)
	if err != nil {
		if next, err = m.Turnover(leave); err != nil {
			next = m
		}
	}
	p.adopt(next)
	for _, one := range p.Pending[m.Name] {
		ask := p.byKey[one.Request]
		switch c, ok := p.promised(next, one, ask); {
		case ok:
			if after, err := next.Turnover(nil, c); err == nil {
				next = after
				p.of[match.ClaimKey{Machine: m.Name, ID: c.ID}] = &hold{ask, p.now, one.Ends}
				p.plan(match.ClaimKey{Machine: m.Name, ID: c.ID}, one.Ends)
			}
		case ask != nil:
			ask.Own++
		}
	}
	return next
}

// promised is the claim that is made of a promise.
func (p *Play) promised(m *match.Machine, one match.Promise, ask *picture.Ask) (c match.Claim, ok bool) {
	if one.Waiting || ask == nil {
		return c, false
	}
	placed, ok := m.Seat(nil, gpu.Request{Resources: one.Resources, Class: one.Class, MayReclaim: one.NonProd}, ask.Class.Alone)
	return p.claim(ask, one.Resources, placed, one.Ends), ok
}

// claim is a new one of a request.
func (p *Play) claim(a *picture.Ask, r roost.Resources, placed gpu.Placement, ends int64) match.Claim {
	p.next++
	limits, _ := a.Class.Ad.Str(roost.AttrLimits)
	c := match.Claim{ID: p.next, Submitter: a.Submitter, Band: a.Band, Resources: r, Placement: placed, Since: p.now, Ends: ends, Job: a.Class.Job, Limits: limits, Queue: a.Queue}
	if c.Ends == 0 && a.Predicted > 0 {
		c.Expected = p.now + seconds(a.Predicted)
	}
	return c
}

// adopt notes when the claims of a machine end that run already.
func (p *Play) adopt(m *match.Machine) {
	for i := range m.Claims {
		c, key := &m.Claims[i], match.ClaimKey{Machine: m.Name, ID: m.Claims[i].ID}
		h := &hold{p.ask(c), max(c.Since, p.now-worklife), c.Ends}
		if h.made == 0 {
			h.made = p.now
		}
		switch {
		case c.Ends == 0 && c.Since == 0 && h.ask != nil: // it has only just begun
			if n := p.length(h.ask); n > 0 {
				h.ends = p.now + n
			}
		case c.Ends == 0 || p.lengths == Predicted:
			h.ends = p.likely(c, h.ask)
		}
		if p.of[key] = h; h.ends == 0 {
			p.Endless++
		}
		p.plan(key, h.ends)
	}
}

// likely is when a claim's task ends by what is known of tasks like it; at its walltime at the latest.
func (p *Play) likely(c *match.Claim, a *picture.Ask) int64 {
	at := c.Expected
	if at == 0 && a != nil && a.Predicted > 0 && c.Since > 0 {
		at = c.Since + seconds(a.Predicted)
	}
	if at == 0 {
		return c.Ends
	}
	if at <= p.now { // it has outlived that; as much again as it has outlived it by is as good a guess as any
		at = 2*p.now - at + 1
	}
	if c.Ends > 0 {
		at = min(at, c.Ends)
	}
	return at
}

func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// length is how long a task of a request runs; 0: for ever.
func (p *Play) length(a *picture.Ask) int64 {
	asked, predicted := seconds(a.Walltime), seconds(a.Predicted)
	if asked > 0 && predicted > 0 {
		predicted = min(predicted, asked)
	}
	if p.lengths == Predicted && predicted > 0 || asked == 0 {
		return predicted
	}
	return asked
}

// again has the task of a claim wait again.
func (p *Play) again(c *match.Claim) {
	if a := p.ask(c); a != nil && c.Job != "" {
		a.Own++
	}
}

// account notes that a claim holds something, or with sign -1 that it does no more.
func (p *Play) account(c *match.Claim, sign int) {
	held := p.Holds[c.Submitter]
	if sign > 0 {
		held = held.Add(c.Resources)
	} else {
		held = held.Sub(c.Resources)
	}
	p.Holds[c.Submitter] = held
	if all, err := roost.ParseLicences(c.Limits); err == nil {
		for _, l := range all {
			p.Licences[l.Name] += sign * l.Count
		}
	}
}

// charge tells the ledger what submitters use by now.
func (p *Play) charge() error {
	epoch, _ := p.Ledger.Epoch()
	e := &ledger.Entry{At: p.now * int64(time.Second), Epoch: epoch}
	for _, who := range slices.SortedFunc(maps.Keys(p.Holds), share.Submitter.Compare) {
		e.Holds = append(e.Holds, ledger.Hold{Submitter: who, Cores: share.Weight(p.Holds[who], p.total)})
	}
	return p.Ledger.Apply(e).Err
}

// Waiting is how many units wait.
func (p *Play) Waiting() (n int) {
	for _, a := range p.Asks {
		n += a.Own
	}
	return n
}

// Run goes on until nothing waits, nothing more can happen, the clock shows until (unix seconds), or enough says so.
func (p *Play) Run(until int64, enough func() bool) error {
	for !enough() && p.Waiting() > 0 {
		if p.Events > maxEvents {
			return fmt.Errorf("%w: after %d events it is still not over; ask about less", roost.Exhausted, maxEvents)
		}
		granted, err := p.pass()
		if err != nil || enough() {
			return err
		}
		if granted { // what that leaves is looked at again
			continue
		}
		at, ok := p.upcoming()
		if !ok || at > until {
			p.now = min(max(p.now, until), at)
			return nil
		}
		p.now = at
		p.finish()
	}
	return nil
}

// upcoming is when something changes.
func (p *Play) upcoming() (at int64, ok bool) {
	at = math.MaxInt64
	look := func(t int64) {
		if t > p.now && t < at {
			at = t
		}
	}
	if len(p.ends) > 0 {
		look(max(p.ends[0].at, p.now+1))
	}
	for _, d := range p.Drains {
		look(unixOf(d.From))
		look(unixOf(d.Until))
	}
	for _, r := range p.Ledger.Reservations() {
		look(r.From.Unix())
		look(r.Until.Unix())
	}
	return at, at < math.MaxInt64
}

func unixOf(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}
