package live

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
	"github.com/roost-batch/roost/negotiator/share"
)

// Change is what could be done to a cell.
type Change struct {
	Commands []ledger.Command // in their order
	Remove   []string         // machines that are taken away with all that runs there
	Add      []Addition
}

// Addition is so many machines like one that is there, with nothing on them.
type Addition struct {
	Like  string
	Count int
}

// maxAdded bounds the machines that are added.
const maxAdded = 100_000

// Comparison is a cell that goes on as it is beside one that was changed.
type Comparison struct {
	Before, After Course
	Evictions     []Eviction // that the change makes at once, beyond those that come about without it
	Moved         []Move     // requests that start earlier or later, the largest difference first
	Drained       []Emptying // the nodes that the change drains
	Quotas        []Quota    // that the change sets, and who asks for more
	Allowed       []string   // jobs that are held because quotas refused them, and that would be allowed then if somebody released them
	Until         time.Time  // to when both were played
	Digest        uint64     // of both
}

// Course is how a cell goes on.
type Course struct {
	Waits    int       // tasks that wait when what can start at once has
	Started  int       // of those, and of what waited before, that started by the end
	Within   int       // of those, within an hour
	Evicted  int       // claims that had to go, at once and later
	MeanWait float64   // seconds from now on, of all that waited; what has not started counts to the end
	Done     time.Time // when the last started; zero: not by the end
	Endless  int       // tasks that run, or start meanwhile, of which nobody knows when they end
	Instants []Instant // whenever something changed, in their order
}

// Move is a request that starts at another time.
type Move struct {
	Key           match.Key
	Submitter     share.Submitter
	Jobs          []string
	Tasks         int
	Before, After time.Time // when its last task starts; zero: not by the end
}

// Emptying is a node that is drained.
type Emptying struct {
	Node    string
	Runs    int       // tasks
	Unknown int       // of those, of which nobody knows when they end
	Over    time.Time // when the others have ended
}

// Quota is one, and how much of it is asked for by jobs that are not over.
type Quota struct {
	Whose string
	Band  string
	Asks  string // in the dimensions that are bounded, as they are written
	Most  string // "": nothing is bounded
	Over  bool   // new jobs are refused until less is asked for
}

// WhatIf plays a cell with and without a change, for so long. The error says what cannot be changed so.
func WhatIf(of *picture.Checkpoint, change Change, lengths Lengths, length time.Duration) (*Comparison, error) {
	before, err := NewPlay(of, lengths)
	if err != nil {
		return nil, err
	}
	after, err := change.play(of, lengths)
	if err != nil {
		return nil, err
	}
	until := before.now + int64(length/time.Second)
	c := &Comparison{Until: time.Unix(until, 0), Drained: change.drained(before), Quotas: change.quotas(of, after.Ledger)}
	c.Allowed = slices.DeleteFunc(allowed(of, after.Ledger), func(id string) bool { return slices.Contains(allowed(of, before.Ledger), id) })
	gone := len(after.Evictions)
	firstBefore, err := c.Before.run(before, until)
	if err != nil {
		return nil, err
	}
	firstAfter, err := c.After.run(after, until)
	if err != nil {
		return nil, err
	}
	c.Evictions = slices.Clone(after.Evictions[:max(firstAfter, gone)])
	for _, e := range before.Evictions[:firstBefore] {
		c.Evictions = slices.DeleteFunc(c.Evictions, func(o Eviction) bool { return o.Machine == e.Machine && o.Claim.ID == e.Claim.ID })
	}
	c.compare(before, after)
	c.Digest = before.Digest()*31 + after.Digest()
	return c, nil
}

// play begins a play of a cell that was changed.
func (c *Change) play(of *picture.Checkpoint, lengths Lengths) (*Play, error) {
	changed, err := clone(of)
	if err != nil {
		return nil, err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(changed.Machines, func(m *match.Machine) bool { return m.Name == name })
	}
	for _, add := range c.Add {
		if err := addTo(changed, add); err != nil {
			return nil, err
		}
	}
	own := ledgerDrains(changed.Ledger)
	for _, command := range c.Commands {
		command.Trusted = true
		for _, node := range changed.Ledger.Nodes(&command) {
			if !has(node) {
				return nil, fmt.Errorf("%s: %w: there is no node of that name", node, roost.NotFound)
			}
		}
		if err := apply(changed, command); err != nil {
			return nil, err
		}
	}
	changed.Drains = slices.DeleteFunc(changed.Drains, func(d match.Drain) bool { return slices.Contains(own, d.Node) })
	for _, d := range picture.NewPolicy(changed.Ledger).Drains {
		if has(d.Node) {
			changed.Drains = append(changed.Drains, d)
		}
	}
	slices.SortFunc(changed.Drains, func(a, b match.Drain) int { return strings.Compare(a.Node, b.Node) })
	for _, name := range c.Remove {
		if !has(name) {
			return nil, fmt.Errorf("%s: %w: there is no node of that name", name, roost.NotFound)
		}
	}
	p, err := NewPlay(changed, lengths)
	if err != nil {
		return nil, err
	}
	p.remove(c.Remove)
	return p, nil
}

func ledgerDrains(l *ledger.Ledger) (nodes []string) {
	for _, d := range l.Drains() {
		nodes = append(nodes, d.Node)
	}
	return nodes
}

// apply has a command applied as the leader would.
func apply(c *picture.Checkpoint, command ledger.Command) error {
	command.Trusted = true
	epoch, _ := c.Ledger.Epoch()
	result := c.Ledger.Apply(&ledger.Entry{At: c.Now.UnixNano(), Epoch: epoch, Commands: []ledger.Command{command}})
	if result.Err != nil {
		return result.Err
	}
	return result.Commands[0]
}

// addTo adds machines to a cell.
func addTo(c *picture.Checkpoint, add Addition) error {
	i := slices.IndexFunc(c.Machines, func(m *match.Machine) bool { return m.Name == add.Like })
	if i < 0 {
		return fmt.Errorf("%s: %w: there is no node of that name to be like", add.Like, roost.NotFound)
	}
	if add.Count < 1 || add.Count > maxAdded {
		return fmt.Errorf("%d nodes like %s: %w: 1 to %d can be added", add.Count, add.Like, roost.Invalid, maxAdded)
	}
	like := c.Machines[i].Vacated()
	for n := range add.Count {
		name := fmt.Sprintf("%s+%d", add.Like, n+1)
		ad := like.Ad.Copy()
		for _, attr := range []string{roost.AttrName, "Machine"} {
			if _, ok := ad.Lookup(attr); ok {
				ad.SetString(attr, name)
			}
		}
		c.Machines = append(c.Machines, match.NewMachine(name, like.Started, like.Sequence, ad))
	}
	slices.SortFunc(c.Machines, func(a, b *match.Machine) int { return strings.Compare(a.Name, b.Name) })
	return nil
}

// remove takes machines away. What runs there waits again.
func (p *Play) remove(names []string) {
	for _, name := range names {
		m := p.Machines[p.at[name]]
		for i := range m.Claims {
			p.evict(name, &m.Claims[i], nil)
		}
		p.total = p.total.Sub(m.Total)
	}
	p.Machines = slices.DeleteFunc(p.Machines, func(m *match.Machine) bool { return slices.Contains(names, m.Name) })
	for i, m := range p.Machines {
		p.at[m.Name] = i
	}
}

// run plays to the end, and returns how many evictions there were at once.
func (c *Course) run(p *Play, until int64) (first int, err error) {
	waited, now := p.Waiting(), p.now
	see := func() bool {
		c.see(p, now)
		return false
	}
	if err := p.Run(now, see); err != nil {
		return 0, err
	}
	first, c.Waits = len(p.Evictions), p.Waiting()
	if err := p.Run(until, see); err != nil {
		return 0, err
	}
	c.see(p, now)
	c.Endless = p.Endless
	sum := 0.0
	for _, s := range p.Starts {
		sum += float64(s.Units) * float64(s.At-now)
		c.Started += s.Units
		if s.At-now <= 3600 {
			c.Within += s.Units
		}
	}
	rest := p.Waiting()
	sum += float64(rest) * float64(until-now)
	if n := max(waited, c.Started+rest); n > 0 {
		c.MeanWait = sum / float64(n)
	}
	if c.Evicted = len(p.Evictions); rest == 0 && len(p.Starts) > 0 {
		c.Done = time.Unix(p.Starts[len(p.Starts)-1].At, 0)
	}
	return first, nil
}

// compare says which requests start at another time.
func (c *Comparison) compare(before, after *Play) {
	last := func(p *Play) map[match.Key]int64 {
		all := map[match.Key]int64{}
		for _, s := range p.Starts {
			all[s.Key] = s.At
		}
		for _, a := range p.Asks {
			if a.Own > 0 {
				delete(all, a.Key)
			}
		}
		return all
	}
	was, is := last(before), last(after)
	for _, a := range before.Asks {
		was, is := was[a.Key], is[a.Key]
		if was == is {
			continue
		}
		m := Move{Key: a.Key, Submitter: a.Submitter, Tasks: max(before.began[a.Key]+a.Own, after.began[a.Key]+after.byKey[a.Key].Own)}
		if was > 0 {
			m.Before = time.Unix(was, 0)
		}
		if is > 0 {
			m.After = time.Unix(is, 0)
		}
		for i := range before.Jobs {
			if j := &before.Jobs[i]; j.Request == a.Key.ID && strings.HasSuffix(j.ID, "."+a.Key.Schedd) {
				m.Jobs = append(m.Jobs, j.ID)
			}
		}
		c.Moved = append(c.Moved, m)
	}
	end := c.Until
	shift := func(m *Move) time.Duration {
		from, to := m.Before, m.After
		if from.IsZero() {
			from = end
		}
		if to.IsZero() {
			to = end
		}
		return to.Sub(from).Abs()
	}
	slices.SortStableFunc(c.Moved, func(a, b Move) int { return cmp.Or(cmp.Compare(shift(&b), shift(&a)), a.Key.Compare(b.Key)) })
}

// drained says how the nodes empty that the change drains.
func (c *Change) drained(p *Play) (all []Emptying) {
	for _, command := range c.Commands {
		if command.Kind != ledger.KindDrain || command.Verb != ledger.Set {
			continue
		}
		node, err := ledger.NameOf(ledger.KindDrain, command.Object)
		i, known := p.at[node]
		if err != nil || !known {
			continue
		}
		e := Emptying{Node: node}
		for k := range p.Machines[i].Claims {
			h := p.of[match.ClaimKey{Machine: node, ID: p.Machines[i].Claims[k].ID}]
			if e.Runs++; h == nil || h.ends == 0 {
				e.Unknown++
			} else {
				e.Over = latest(e.Over, time.Unix(h.ends, 0))
			}
		}
		all = append(all, e)
	}
	return all
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
