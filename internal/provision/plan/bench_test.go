package plan

import (
	"fmt"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/provision/provider"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/match"
)

var epoch = time.Unix(1_800_000_000, 0)

// outerSystem plays what is outside of the planner: outer systems that take everything,
// and a pool.
type outerSystem struct {
	t       testing.TB
	v       *Provisioning
	now     time.Time
	demand  []Demand
	pilots  []Pilot
	refuse  string // text with which submits are refused; "": they are taken
	serial  int
	submits []Decision
	cancels []Decision
	last    Result
}

func newOuterSystem(t testing.TB, settings ...provider.Settings) *outerSystem {
	o := &outerSystem{t: t, v: NewProvisioning(), now: epoch}
	var list []provider.Settings
	for _, s := range settings {
		s = s.WithDefaults()
		if problems := s.Check(); len(problems) > 0 {
			t.Fatal(problems)
		}
		list = append(list, s)
	}
	o.v.SetProviders(list)
	return o
}

// cluster returns settings of nodes with some cores.
func cluster(name string, cores int) provider.Settings {
	return provider.Settings{Name: name, Kind: provider.Slurm, Walltime: time.Hour,
		Node: provider.NodeShape{Resources: roost.Resources{CPU: roost.MilliCPU(1000 * cores),
			Memory: roost.Bytes(cores) * 4 * roost.GiB}}}
}

// tasks returns demand that has waited for an hour.
func tasks(job string, units, cores int, walltime time.Duration) Demand {
	r := roost.Resources{CPU: roost.MilliCPU(1000 * cores), Memory: roost.GiB}
	class, err := match.NewClass("", fairshare.Submitter{Owner: "ada"}, roost.BatchBand, r)
	if err != nil {
		panic(err)
	}
	return Demand{Job: job, Submitter: fairshare.Submitter{Owner: "ada"}, Band: roost.BatchBand, Units: units,
		Since: epoch.Add(-time.Hour), Walltime: walltime, Class: class}
}

// requiring sets the requirements of a demand.
func (d Demand) requiring(text string) Demand {
	class, err := match.NewClass("[Requirements = "+text+"]", d.Submitter, d.Band, d.Class.Resources)
	if err != nil {
		panic(err)
	}
	d.Class = class
	return d
}

func (d Demand) inGangs(n int) Demand { d.Gang = n; return d }

func (d Demand) since(at time.Time) Demand { d.Since = at; return d }

// step plans once and does what the plan says.
func (o *outerSystem) step() Result {
	o.t.Helper()
	o.v.SeePilots(o.pilots, o.now)
	o.last = o.v.Plan(o.now, o.demand, o.pilots)
	o.v.NoteSurplus(o.last.Surplus, o.now)
	for _, d := range o.last.Decisions {
		switch d.Action {
		case Submit:
			o.serial++
			key := fmt.Sprintf("k%04d", o.serial)
			o.v.Begin(key, d, o.now)
			o.submits = append(o.submits, d)
			if o.refuse != "" {
				o.v.SubmitRefused(key, o.refuse, o.now)
			} else {
				o.v.SubmitTaken(key, "id-"+key, o.now)
			}
		case Cancel:
			o.cancels = append(o.cancels, d)
			o.v.CancelOrdered(d, o.now)
			o.answer(d.Key, OuterEnded)
		}
	}
	if err := o.v.Check(); err != nil {
		o.t.Fatal(err)
	}
	return o.last
}

// run plans every five seconds.
func (o *outerSystem) run(d time.Duration) {
	o.t.Helper()
	for end := o.now.Add(d); o.now.Before(end); o.now = o.now.Add(5 * time.Second) {
		o.step()
	}
}

// answer is a status answer about one allocation.
func (o *outerSystem) answer(key string, s OuterState) {
	a := o.v.Allocations[key]
	o.v.StatusAnswered(a.Provider, []string{key}, map[string]OuterStatus{a.OuterID: {State: s, Text: "state"}}, o.now)
}

// join lets a pilot with some cores join for an allocation.
func (o *outerSystem) join(key, host string, cores float64) {
	ad := classad.New()
	ad.SetString(roost.AttrName, key+"."+host)
	for _, name := range []string{roost.AttrCpus, roost.AttrTotalCpus} {
		ad.SetReal(name, cores)
	}
	for _, name := range []string{roost.AttrMemory, roost.AttrTotalMemory} {
		ad.SetInt(name, 64<<10)
	}
	for _, name := range []string{roost.AttrDisk, roost.AttrTotalDisk} {
		ad.SetInt(name, 64<<20)
	}
	ad.SetString("Site", "far")
	until := o.now.Add(time.Hour)
	if a := o.v.Allocations[key]; a != nil {
		until = o.now.Add(a.Walltime)
	}
	o.pilots = append(o.pilots, Pilot{Name: key + "." + host, Key: key, Host: host, Until: until, Ad: ad})
	o.v.SeePilots(o.pilots, o.now)
}

// leave lets the first pilots of an allocation leave.
func (o *outerSystem) leave(key string, n int) {
	var rest []Pilot
	for _, p := range o.pilots {
		if p.Key == key && n > 0 {
			n--
			continue
		}
		rest = append(rest, p)
	}
	o.pilots = rest
	o.v.SeePilots(o.pilots, o.now)
}

func (o *outerSystem) wantSubmits(nodes ...int) {
	o.t.Helper()
	var got []int
	for _, d := range o.submits {
		got = append(got, d.Nodes)
	}
	if fmt.Sprint(got) != fmt.Sprint(nodes) {
		o.t.Fatalf("submits of %v nodes, want %v; the last plan: %+v", got, nodes, o.last)
	}
}
