package match

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
)

// Soft constraints improve a machine's score and never exclude a machine. They come after
// Rank, in this order: how many expressions of Prefer hold, how many Packages are
// missing, how many units of the job the machine's failure domain has already.

// Bounds on the soft constraints of a request.
const (
	maxPrefer           = 16
	maxPackages         = 64
	maxPortCapabilities = 8
	maxPreferenceBytes  = 4096 // bytes of one expression or package name
)

// readSoftConstraints reads limits, spread, exclusive use and preferences from the ad.
func (c *RequestClass) readSoftConstraints() (err error) {
	text, _ := c.Ad.Str(roost.AttrLimits)
	if c.Limits, err = roost.ParseLimitRequests(text); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	c.Spread, _ = c.Ad.Str(roost.AttrSpread)
	c.spreadAttrs = [1]string{c.Spread}
	c.Scatter, _ = c.Ad.Bool(roost.AttrScatter)
	c.PlacementSetAttr, _ = c.Ad.Str(roost.AttrPlacementSet)
	if c.Exclusive, _ = c.Ad.Bool(roost.AttrExclusive); c.Exclusive && c.AppClass == gpu.StreamClass {
		return fmt.Errorf("request: %s: %w: stream tasks share their machines with batch", roost.AttrExclusive,
			roost.Invalid)
	}
	c.Job, _ = c.Ad.Str(roost.AttrJobID)
	c.SubmitHost, _ = c.Ad.Str(roost.AttrSubmitHost)
	c.StaticPorts = portList(c.Ad, roost.AttrStaticPorts)
	if c.PortCapabilities, err = c.stringList(roost.AttrPortCapabilities, maxPortCapabilities); err != nil {
		return err
	}
	if c.PreferredPackages, err = c.stringList(roost.AttrPackages, maxPackages); err != nil {
		return err
	}
	slices.Sort(c.PreferredPackages)
	c.PreferredPackages = slices.Compact(c.PreferredPackages)
	prefer, err := c.stringList(roost.AttrPrefer, maxPrefer)
	if err != nil {
		return err
	}
	for _, text := range prefer {
		e, err := classad.ParseExpr(text)
		if err != nil {
			return fmt.Errorf("request: %s: %w: %.80q: %w", roost.AttrPrefer, roost.Invalid, text, err)
		}
		c.Prefer = append(c.Prefer, e)
	}
	return nil
}

// stringList returns an attribute that is a list of strings, none of them empty or too
// long.
func (c *RequestClass) stringList(name string, most int) ([]string, error) {
	if _, ok := c.Ad.Lookup(name); !ok {
		return nil, nil
	}
	all, ok := c.Ad.Strings(name)
	if !ok || len(all) > most || slices.ContainsFunc(all, func(s string) bool {
		return s == "" || len(s) > maxPreferenceBytes
	}) {
		return nil, fmt.Errorf("request: %s: %w: it has to be a list of at most %d strings of 1 to %d bytes", name,
			roost.Invalid, most, maxPreferenceBytes)
	}
	return all, nil
}

// readPackages reads the names of the packages that a machine has installed. The digests
// of container images that it has are names, too.
func (m *Machine) readPackages() {
	m.packages, _ = m.Ad.Strings(roost.AttrPackages)
	images, _ := m.Ad.Strings(roost.AttrContainerImages)
	m.packages = append(m.packages, images...)
	for i, name := range m.packages {
		m.packages[i] = strings.Clone(name)
	}
	if slices.Sort(m.packages); len(m.packages) == 0 {
		m.packages = nil
	}
}

// missingPackages returns how many of the sorted packages the machine does not have.
func (m *Machine) missingPackages(packages []string) (n int) {
	for _, name := range packages {
		if _, has := slices.BinarySearch(m.packages, name); !has {
			n++
		}
	}
	return n
}

// softConstraintScore returns how badly a machine meets the soft constraints of w; lower
// is better.
func (p *negotiationCycle) softConstraintScore(w *requestState, at int) (far int64) {
	c := w.Class
	if len(c.Prefer) > 0 {
		far = int64(len(c.Prefer)-p.preferHitCount(w, at)) << 48
	}
	if len(c.PreferredPackages) > 0 {
		far |= int64(p.Machines[at].missingPackages(c.PreferredPackages)) << 40
	}
	if p.spreadAttrs(w) != nil {
		far |= p.unitsInDomains(w, at)
	}
	return far
}

// preferHitCount returns how many expressions of Prefer hold for a machine.
func (p *negotiationCycle) preferHitCount(w *requestState, at int) int {
	if w.preferHits == nil {
		w.preferHits = make([]int8, len(p.Machines))
		for i := range w.preferHits {
			w.preferHits[i] = -1
		}
	}
	if w.preferHits[at] < 0 {
		n, _ := p.requestWithPreferRank(w.Class).Match(p.Machines[at].row, &p.env)
		w.preferHits[at] = int8(n)
	}
	return int(w.preferHits[at])
}

// requestWithPreferRank returns a class's request with a Rank that counts the expressions
// of Prefer that hold.
func (t *Matcher) requestWithPreferRank(c *RequestClass) *classad.Query {
	if c.rankCountsPrefer == nil {
		var sum []string
		for _, e := range c.Prefer {
			sum = append(sum, "(("+e.String()+") =?= true ? 1 : 0)")
		}
		ad := c.Ad.Copy()
		if err := ad.SetExpr(roost.AttrRank, strings.Join(sum, " + ")); err != nil {
			panic(fmt.Sprintf("match: %v", err)) // the text comes from the parser's own printer
		}
		c.rankCountsPrefer = t.table.Compile(ad)
	}
	return c.rankCountsPrefer
}
