package live

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/story"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/negotiator/picture"
	"github.com/roost-batch/roost/negotiator/share"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestStories plays scripts. Times are in seconds from the checkpoint on. The commands are
//
//	machine NAME cpus=N [gpus=N] [attr=EXPR]     of one GiB a core
//	runs MACHINE OWNER cpus=N [ends=T] [expected=T] [band=B] [job=ID] [gpus=N] [fresh=yes]     fresh: no machine says yet what runs there
//	request ID owner=O cpus=N wanted=N [walltime=T] [predicted=T] [band=B] [gang=N] [queue=Q] [limit=L] [gpus=N]    with Requirements as input
//	job ID request=N waiting=N [running=N] [priority=N] [owner=O] [band=B] [open=N] [most=N] [cpus=N] [why=W]    most: so many at once; why: it does not start
//	set KIND                      with the object as input
//	fit now|behind|empty cpus=N [owner=O] [band=B] [gang=N] [gpus=N] [limit=L]                      with Requirements as input
//	when JOB [predicted]
//	new cpus=N [tasks=N] [walltime=T] [owner=O]
//	whatif [remove=M] [add=M*N]   with commands as input, "KIND OBJECT" or "KIND -NAME"
//
// Each question is asked twice, and has to be answered alike.
func TestStories(t *testing.T) {
	story.Run(t, "testdata/*.txt", func(t *testing.T) func(story.Step) string { return newTeller(t).tell })
}

// began is the moment of all checkpoints.
const began = 1_000_000

type teller struct {
	t *testing.T
	c *picture.Checkpoint
}

func newTeller(t *testing.T) *teller {
	c := &picture.Checkpoint{Ledger: ledger.New(), Holds: map[share.Submitter]roost.Resources{}, Schedds: map[string]bool{"s": true}}
	c.Now = time.Unix(began, 0)
	c.Known = func(schedd string) bool { return c.Schedds[schedd] }
	c.Ledger.Apply(&ledger.Entry{At: began * 1e9, Lead: "head"})
	return &teller{t, c}
}

// step is a step with its arguments of the form key=value.
type step struct {
	story.Step
	pairs map[string]string
}

func (s step) number(key string, otherwise int) int {
	if n, err := strconv.Atoi(s.pairs[key]); err == nil {
		return n
	}
	return otherwise
}

func (s step) resources() roost.Resources {
	cpus := s.number("cpus", 1)
	return roost.Resources{CPU: 1000 * roost.MilliCPU(cpus), Memory: roost.Bytes(cpus) * roost.GiB, GPUs: s.number("gpus", 0)}
}

func (x *teller) tell(s story.Step) string {
	one := step{s, map[string]string{}}
	for _, a := range s.Args {
		if k, v, ok := strings.Cut(a, "="); ok {
			one.pairs[k] = v
		}
	}
	do := map[string]func(step) (string, error){
		"machine": x.machine, "runs": x.runs, "request": x.request, "job": x.job, "set": x.set, "fit": x.fit, "when": x.when, "new": x.anew, "whatif": x.whatif,
	}[s.Command]
	if do == nil {
		x.t.Fatalf("unknown command %s", s.Command)
	}
	text, err := do(one)
	if err != nil {
		return "error: " + err.Error()
	}
	return text
}

func (x *teller) machine(s step) (string, error) {
	r := s.resources()
	topology := gpu.Topology{CPU: r.CPU, Memory: r.Memory, Cores: make([]gpu.Core, r.CPU/1000)}
	for i := range r.GPUs {
		topology.Devices = append(topology.Devices, gpu.Device{UUID: fmt.Sprintf("GPU-%d", i), Memory: 8 * roost.GiB, Health: gpu.Healthy()})
	}
	units, err := gpu.Cut(topology, gpu.Layout{Shape: gpu.Shared})
	if err != nil {
		return "", err
	}
	ad := classad.New()
	f := gpu.NewFree(units, roost.TiB)
	ad.SetString(roost.AttrName, s.Args[0])
	ad.SetReal(roost.AttrTotalDisk, float64(roost.TiB/roost.KiB))
	ad.SetReal(roost.AttrDisk, float64(roost.TiB/roost.KiB))
	ad.SetInt(roost.AttrCpus, int64(r.CPU/1000))
	ad.SetString("Site", cmp.Or(s.pairs["site"], "home"))
	f.Describe(ad)
	x.c.Machines = append(x.c.Machines, match.NewMachine(s.Args[0], 1, 1, ad))
	return "", nil
}

func (x *teller) runs(s step) (string, error) {
	for i, m := range x.c.Machines {
		if m.Name != s.Args[0] {
			continue
		}
		p, ok := m.Seat(nil, gpu.Request{Resources: s.resources()}, false)
		if !ok {
			x.t.Fatalf("line %d: there is no room", s.Line)
		}
		band, err := roost.ParseBand(cmp.Or(s.pairs["band"], "batch"))
		if err != nil {
			return "", err
		}
		at := func(key string) int64 {
			if n := s.number(key, 0); n != 0 {
				return began + int64(n)
			}
			return 0
		}
		c := match.Claim{
			ID: uint64(len(m.Claims) + 1), Submitter: share.Submitter{Owner: s.Args[1]}, Band: band, Resources: s.resources(), Placement: p, Since: began - 1000, Ends: at("ends"),
			Expected: at("expected"), Job: s.pairs["job"],
		}
		if s.pairs["fresh"] != "" {
			c.Since, c.Job = 0, ""
		}
		if x.c.Machines[i], err = m.Turnover(nil, c); err != nil {
			return "", err
		}
	}
	return "", nil
}

// ask is a request as the words of a step have it.
func (x *teller) ask(s step) (*picture.Ask, error) {
	a := &picture.Ask{Text: "[]", Own: s.number("wanted", 1), Queue: s.pairs["queue"]}
	if len(s.Input) > 0 {
		a.Text = "[Requirements = " + strings.Join(s.Input, " ") + "]"
	}
	if l := s.pairs["limit"]; l != "" {
		a.Text = fmt.Sprintf("[ConcurrencyLimits = %q]", l)
	}
	id, _ := strconv.ParseUint(s.Args[0], 10, 64)
	a.Key, a.Submitter = match.Key{Schedd: "s", ID: cmp.Or(id, 999)}, share.Submitter{Owner: cmp.Or(s.pairs["owner"], "ann")}
	a.Gang, a.Oldest = s.number("gang", 0), int64(id)
	a.Walltime, a.Predicted = time.Duration(s.number("walltime", 0))*time.Second, time.Duration(s.number("predicted", 0))*time.Second
	var err error
	if a.Band, err = roost.ParseBand(cmp.Or(s.pairs["band"], "batch")); err == nil {
		a.Class, err = match.NewClass(a.Text, a.Submitter, a.Band, s.resources())
	}
	return a, err
}

func (x *teller) request(s step) (string, error) {
	a, err := x.ask(s)
	x.c.Asks = append(x.c.Asks, a)
	return "", err
}

func (x *teller) job(s step) (string, error) {
	x.c.Jobs = append(x.c.Jobs, picture.Job{
		ID: s.Args[0], Request: uint64(s.number("request", 0)), Waiting: s.number("waiting", 0), Running: s.number("running", 0), Priority: int32(s.number("priority", 0)),
		Submitted: int64(len(x.c.Jobs)), Owner: s.pairs["owner"], Band: s.pairs["band"], Open: s.number("open", 0), AtOnce: s.number("most", 0), Why: s.pairs["why"], Refused: s.pairs["why"] == "refused",
	})
	x.c.Jobs[len(x.c.Jobs)-1].Asks(s.resources())
	return "", nil
}

func (x *teller) set(s step) (string, error) {
	return "", apply(x.c, ledger.Command{Verb: ledger.Set, Kind: ledger.Kind(s.Args[0]), Object: []byte(strings.Join(s.Input, "\n"))})
}

// twice asks twice.
func twice[T any](x *teller, ask func() (T, error), digest func(T) uint64) (T, error) {
	x.t.Helper()
	first, err := ask()
	second, again := ask()
	if (err == nil) != (again == nil) || err == nil && digest(first) != digest(second) {
		x.t.Errorf("asked twice: %+v, %v and %+v, %v", first, err, second, again)
	}
	return first, err
}

func (x *teller) fit(s step) (string, error) {
	a, err := x.ask(s)
	if err != nil {
		return "", err
	}
	where := map[string]Where{"now": Now, "behind": Behind, "empty": Empty}[s.Args[0]]
	room, err := twice(x, func() (*Room, error) { return Fit(x.c, a, where) }, func(r *Room) uint64 { return r.Digest })
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d fit", room.Tasks)
	if room.Preempting > 0 {
		fmt.Fprintf(&b, ", and %d if %d make room", room.Preempting, room.Evicted)
	}
	for _, on := range room.Machines {
		fmt.Fprintf(&b, "\n%s: %d", on.Machine, on.Tasks)
		if on.Preempting > 0 {
			fmt.Fprintf(&b, ", and %d if others make room", on.Preempting)
		}
	}
	for _, r := range room.Explanation.Reasons {
		fmt.Fprintf(&b, "\n%d %s", r.Machines, r.Text)
	}
	return b.String(), nil
}

func since(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return fmt.Sprint(t.Unix() - began)
}

func (x *teller) when(s step) (string, error) {
	lengths := Asked
	if len(s.Args) > 1 {
		lengths = Predicted
	}
	return x.answer(twice(x, func() (*Answer, error) { return When(x.c, s.Args[0], lengths) }, func(a *Answer) uint64 { return a.Digest }))
}

func (x *teller) answer(a *Answer, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("%d tasks behind %d, the first at %s, the last at %s, %d endless", a.Tasks, a.Ahead, since(a.First), since(a.Last), a.Endless)
	if a.Explanation != nil {
		text += "\n" + a.Explanation.Summary
	}
	return strings.Join(append([]string{text}, strings.Fields(a.Stopped)...), " "), nil
}

func (x *teller) anew(s step) (string, error) {
	ad := classad.New()
	ad.SetString(roost.AttrCmd, "/bin/true")
	r := s.resources()
	ad.SetInt(roost.AttrRequestCpus, int64(r.CPU/1000))
	ad.SetInt(roost.AttrRequestMemory, int64(r.Memory/roost.MiB))
	if w := s.number("walltime", 0); w > 0 {
		ad.SetInt(roost.AttrWalltime, int64(w))
	}
	asks, err := Asks(x.c.Now, queue.Submitter{User: cmp.Or(s.pairs["owner"], "ann"), UID: 1}, []queue.Spec{{Ad: ad, Count: s.number("tasks", 1)}})
	if err != nil {
		return "", err
	}
	return x.answer(twice(x, func() (*Answer, error) { return WhenNew(x.c, asks, Asked) }, func(a *Answer) uint64 { return a.Digest }))
}

func (x *teller) whatif(s step) (string, error) {
	var change Change
	for _, line := range s.Input {
		kind, object, _ := strings.Cut(line, " ")
		c := ledger.Command{Verb: ledger.Set, Kind: ledger.Kind(kind), Object: []byte(object)}
		if name, removed := strings.CutPrefix(object, "-"); removed {
			c = ledger.Command{Verb: ledger.Remove, Kind: ledger.Kind(kind), Name: name}
		}
		change.Commands = append(change.Commands, c)
	}
	if m := s.pairs["remove"]; m != "" {
		change.Remove = strings.Split(m, ",")
	}
	if like, n, ok := strings.Cut(s.pairs["add"], "*"); ok {
		count, _ := strconv.Atoi(n)
		change.Add = []Addition{{like, count}}
	}
	c, err := twice(x, func() (*Comparison, error) { return WhatIf(x.c, change, Asked, time.Hour) }, func(c *Comparison) uint64 { return c.Digest })
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, one := range []Course{c.Before, c.After} {
		fmt.Fprintf(&b, "%s: %d wait, %d start, %d evicted, mean wait %.1f, done %s\n", [...]string{"before", "after"}[i], one.Waits, one.Started, one.Evicted, one.MeanWait, since(one.Done))
	}
	for _, e := range c.Evictions {
		fmt.Fprintf(&b, "evicts %s of %s on %s: %s\n", e.Claim.Job, e.Claim.Submitter, e.Machine, e.Why)
	}
	for _, m := range c.Moved {
		fmt.Fprintf(&b, "request %d of %v %v: %s, now %s\n", m.Key.ID, m.Submitter, m.Jobs, since(m.Before), since(m.After))
	}
	for _, d := range c.Drained {
		fmt.Fprintf(&b, "%s: %d run, over by %s, %d unknown\n", d.Node, d.Runs, since(d.Over), d.Unknown)
	}
	for _, q := range c.Quotas {
		fmt.Fprintf(&b, "%s in %s asks for %s of %s, over %v\n", q.Whose, q.Band, q.Asks, q.Most, q.Over)
	}
	if len(c.Allowed) > 0 {
		fmt.Fprintf(&b, "allows %v\n", c.Allowed)
	}
	return b.String(), nil
}
