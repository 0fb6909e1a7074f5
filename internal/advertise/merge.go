package advertise

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// merger makes one picture of what several collectors say. An ad is in the picture while at least one source has it; the newest that any
// has told is what is shown.
type merger struct {
	ads     map[string]*merged
	sources []source
	synced  bool // some source has told all it knows
	tell    bool // there is something to tell, a change or the first sync
	changes []Change
}

type merged struct {
	shown   Change
	by      int    // the source that told what is shown
	holders []bool // by source: whether it has the ad
}

// source is what the merger remembers of one collector.
type source struct {
	unconfirmed map[string]bool // told before the stream broke, and not since
	deadline    time.Time       // when the unconfirmed are given up; zero while not synced
}

func newMerger(sources int) *merger {
	return &merger{ads: map[string]*merged{}, sources: make([]source, sources)}
}

func (m *merger) apply(now time.Time, n news) {
	s := &m.sources[n.source]
	switch {
	case n.delta == nil:
		m.begin(s, n.source)
	case n.delta.GetSynced():
		m.tell = m.tell || !m.synced
		m.synced = true
		if len(s.unconfirmed) > 0 {
			s.deadline = now.Add(grace)
		}
	case n.delta.GetRemoved():
		delete(s.unconfirmed, n.delta.GetName())
		m.drop(n.source, n.delta.GetName())
	default:
		delete(s.unconfirmed, n.delta.GetName())
		m.put(n.source, n.delta)
	}
}

// begin marks everything that the source had told as unconfirmed: its new stream starts with all that it knows.
func (m *merger) begin(s *source, index int) {
	s.unconfirmed = map[string]bool{}
	s.deadline = time.Time{}
	for name, ad := range m.ads {
		if ad.holders[index] {
			s.unconfirmed[name] = true
		}
	}
}

func (m *merger) put(source int, d *wire.AdDelta) {
	ad := m.ads[d.GetName()]
	if ad == nil {
		ad = &merged{holders: make([]bool, len(m.sources))}
		m.ads[d.GetName()] = ad
	}
	ad.holders[source] = true
	if !ad.replaces(source, d) {
		return
	}
	ad.by, ad.shown = source, Change{
		Name: d.GetName(), Ad: d.GetAd(), Sequence: d.GetSequence(), Started: d.GetStarted(), Private: d.GetPrivate(), Node: d.GetNode(),
	}
	m.tellOf(ad.shown)
}

// replaces reports whether what a source says is shown in the place of what is. Versions order the ads of one node only: another could say anything. Where collectors
// name different nodes, because one has started again and heard the wrong one first, a name that is a node's is that node's.
func (ad *merged) replaces(source int, d *wire.AdDelta) bool {
	switch {
	case ad.shown.Name == "" || ad.shown.Node == d.GetNode():
		return newer(d, ad.shown)
	case d.GetNode() == d.GetName() || ad.by == source: // which takes its own word back
		return true
	}
	return ad.shown.Node != d.GetName() && !ad.holders[ad.by]
}

// newer reports whether d is a later version than what is shown.
func newer(d *wire.AdDelta, shown Change) bool {
	if d.GetStarted() != shown.Started {
		return d.GetStarted() > shown.Started
	}
	return d.GetSequence() > shown.Sequence
}

func (m *merger) drop(source int, name string) {
	ad := m.ads[name]
	if ad == nil {
		return
	}
	ad.holders[source] = false
	if slices.Contains(ad.holders, true) {
		return
	}
	delete(m.ads, name)
	m.tellOf(Change{Name: name, Removed: true, Sequence: ad.shown.Sequence, Started: ad.shown.Started})
}

func (m *merger) tellOf(c Change) {
	m.changes = append(m.changes, c)
	m.tell = true
}

// expire gives up what sources did not confirm in time.
func (m *merger) expire(now time.Time) {
	for i := range m.sources {
		s := &m.sources[i]
		if s.deadline.IsZero() || now.Before(s.deadline) {
			continue
		}
		names := make([]string, 0, len(s.unconfirmed))
		for name := range s.unconfirmed {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			m.drop(i, name)
		}
		s.unconfirmed, s.deadline = nil, time.Time{}
	}
}

// nextWake is when expire has something to do.
func (m *merger) nextWake() (at time.Time, ok bool) {
	for _, s := range m.sources {
		if !s.deadline.IsZero() && (!ok || s.deadline.Before(at)) {
			at, ok = s.deadline, true
		}
	}
	return at, ok
}

// take returns what has changed since it was last called; tell is false when there is nothing to say.
func (m *merger) take() (changes []Change, tell bool) {
	changes, tell = m.changes, m.tell
	m.changes, m.tell = nil, false
	return changes, tell
}
