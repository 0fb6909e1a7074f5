package adclient

import (
	"slices"
	"time"

	"github.com/roost-batch/roost/internal/wire"
)

// adMerger merges the ads of several collectors. An ad exists in the result while at
// least one source has it; the newest version of any source is shown.
type adMerger struct {
	ads     map[string]*mergedAd
	sources []collectorSource
	synced  bool // some source has sent all its ads
	pending bool // there is a change to report, or the first sync
	changes []AdChange
}

type mergedAd struct {
	shown   AdChange
	shownBy int    // the source of the version that is shown
	holders []bool // by source: whether it has the ad
}

// collectorSource is the merger's state of one collector.
type collectorSource struct {
	unconfirmed map[string]bool // ads received before the stream broke, and not since
	deadline    time.Time       // when the unconfirmed ads are dropped; zero while not synced
}

func newMerger(sources int) *adMerger {
	return &adMerger{ads: map[string]*mergedAd{}, sources: make([]collectorSource, sources)}
}

func (m *adMerger) apply(now time.Time, n adEvent) {
	s := &m.sources[n.source]
	switch {
	case n.delta == nil:
		m.beginStream(s, n.source)
	case n.delta.GetSynced():
		m.pending = m.pending || !m.synced
		m.synced = true
		if len(s.unconfirmed) > 0 {
			s.deadline = now.Add(confirmTimeout)
		}
	case n.delta.GetRemoved():
		delete(s.unconfirmed, n.delta.GetName())
		m.dropAd(n.source, n.delta.GetName())
	default:
		delete(s.unconfirmed, n.delta.GetName())
		m.putAd(n.source, n.delta)
	}
}

// beginStream marks all ads of a source as unconfirmed, because its new stream starts
// with all ads that it has.
func (m *adMerger) beginStream(s *collectorSource, index int) {
	s.unconfirmed = map[string]bool{}
	s.deadline = time.Time{}
	for name, ad := range m.ads {
		if ad.holders[index] {
			s.unconfirmed[name] = true
		}
	}
}

func (m *adMerger) putAd(source int, d *wire.AdDelta) {
	ad := m.ads[d.GetName()]
	if ad == nil {
		ad = &mergedAd{holders: make([]bool, len(m.sources))}
		m.ads[d.GetName()] = ad
	}
	ad.holders[source] = true
	if !ad.isReplacedBy(source, d) {
		return
	}
	ad.shownBy, ad.shown = source, AdChange{
		Name: d.GetName(), Ad: d.GetAd(), Sequence: d.GetSequence(), Started: d.GetStarted(), Private: d.GetPrivate(),
		Node: d.GetNode(),
	}
	m.markChanged(ad.shown)
}

// isReplacedBy reports whether a source's version replaces the shown one. Versions are
// comparable only between ads of one node, because another node could use any numbers.
// Two collectors may name different nodes, if one was restarted and received the wrong ad
// first; then the ad of the node with that name wins.
func (ad *mergedAd) isReplacedBy(source int, d *wire.AdDelta) bool {
	switch {
	case ad.shown.Name == "" || ad.shown.Node == d.GetNode():
		return isNewer(d, ad.shown)
	case d.GetNode() == d.GetName() || ad.shownBy == source: // the source withdraws its own ad
		return true
	}
	return ad.shown.Node != d.GetName() && !ad.holders[ad.shownBy]
}

// isNewer reports whether d is a later version than the shown one.
func isNewer(d *wire.AdDelta, shown AdChange) bool {
	if d.GetStarted() != shown.Started {
		return d.GetStarted() > shown.Started
	}
	return d.GetSequence() > shown.Sequence
}

func (m *adMerger) dropAd(source int, name string) {
	ad := m.ads[name]
	if ad == nil {
		return
	}
	ad.holders[source] = false
	if slices.Contains(ad.holders, true) {
		return
	}
	delete(m.ads, name)
	m.markChanged(AdChange{Name: name, Removed: true, Sequence: ad.shown.Sequence, Started: ad.shown.Started})
}

func (m *adMerger) markChanged(c AdChange) {
	m.changes = append(m.changes, c)
	m.pending = true
}

// expireUnconfirmed drops ads that sources did not confirm in time.
func (m *adMerger) expireUnconfirmed(now time.Time) {
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
			m.dropAd(i, name)
		}
		s.unconfirmed, s.deadline = nil, time.Time{}
	}
}

// nextWake returns when expireUnconfirmed has something to do.
func (m *adMerger) nextWake() (at time.Time, ok bool) {
	for _, s := range m.sources {
		if !s.deadline.IsZero() && (!ok || s.deadline.Before(at)) {
			at, ok = s.deadline, true
		}
	}
	return at, ok
}

// takeChanges returns the changes since the last call. tell is false if there is nothing
// to report.
func (m *adMerger) takeChanges() (changes []AdChange, tell bool) {
	changes, tell = m.changes, m.pending
	m.changes, m.pending = nil, false
	return changes, tell
}
