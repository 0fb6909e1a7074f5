package whatif

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
	"github.com/roost-batch/roost/internal/script"
	"github.com/roost-batch/roost/negotiator/cellstate"
	"github.com/roost-batch/roost/negotiator/fairshare"
	"github.com/roost-batch/roost/negotiator/ledger"
	"github.com/roost-batch/roost/negotiator/match"
	"github.com/roost-batch/roost/schedd/queue"
)

// TestStories runs the scripts of testdata. Times are in seconds since the checkpoint.
// The commands are
//
//	machine NAME cpus=N [gpus=N] [attr=EXPR]     one GiB for each core
//	runs MACHINE OWNER cpus=N [ends=T] [expected=T] [band=B] [job=ID] [gpus=N] [fresh=yes]
//	                              fresh: no machine ad shows the task yet
//	request ID owner=O cpus=N wanted=N [walltime=T] [predicted=T] [band=B] [gang=N]
//	           [queue=Q] [limit=L] [gpus=N]      with Requirements as input
//	job ID request=N waiting=N [running=N] [priority=N] [owner=O] [band=B] [open=N]
//	       [most=N] [cpus=N] [why=W]
//	                              most: tasks at once; why: reason that it does not start
//	set KIND                      with the object as input
//	fit now|behind|empty cpus=N [owner=O] [band=B] [gang=N] [gpus=N] [limit=L]
//	                              with Requirements as input
//	when JOB [predicted]
//	new cpus=N [tasks=N] [walltime=T] [owner=O]
//	whatif [remove=M] [add=M*N] [alter=JOB [cpus=N] [band=B]]
//	                              with commands as input, "KIND OBJECT" or "KIND -NAME"
//
// Each question is asked twice and must get the same answer.
func TestStories(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func(script.ScriptCommand) string {
		return newScriptRunner(t).report
	})
}

// startTime is the time of all checkpoints in unix seconds.
const startTime = 1_000_000

type scriptRunner struct {
	test *testing.T
	cell *cellstate.CellCheckpoint
}

func newScriptRunner(t *testing.T) *scriptRunner {
	c := &cellstate.CellCheckpoint{Ledger: ledger.New(), ClaimHolders: map[fairshare.Submitter]roost.Resources{},
		Schedds: map[string]bool{"s": true}}
	c.Now = time.Unix(startTime, 0)
	c.KnownSchedds = func(schedd string) bool { return c.Schedds[schedd] }
	c.Ledger.Apply(&ledger.LogEntry{At: startTime * 1e9, Lead: "head"})
	return &scriptRunner{t, c}
}

// scriptStep is a command with its key=value arguments.
type scriptStep struct {
	script.ScriptCommand
	pairs map[string]string
}

func (s scriptStep) number(key string, otherwise int) int {
	if n, err := strconv.Atoi(s.pairs[key]); err == nil {
		return n
	}
	return otherwise
}

func (s scriptStep) resources() roost.Resources {
	cpus := s.number("cpus", 1)
	return roost.Resources{CPU: 1000 * roost.MilliCPU(cpus), Memory: roost.Bytes(cpus) * roost.GiB,
		GPUs: s.number("gpus", 0)}
}

func (x *scriptRunner) report(s script.ScriptCommand) string {
	one := scriptStep{s, map[string]string{}}
	for _, a := range s.Args {
		if k, v, ok := strings.Cut(a, "="); ok {
			one.pairs[k] = v
		}
	}
	do := map[string]func(scriptStep) (string, error){
		"machine": x.machine, "runs": x.addRunning, "request": x.request, "job": x.job, "set": x.setPolicy,
		"fit": x.answerRoom, "when": x.answerWhen, "new": x.newScript, "whatif": x.compareChange,
	}[s.Command]
	if do == nil {
		x.test.Fatalf("unknown command %s", s.Command)
	}
	text, err := do(one)
	if err != nil {
		return "error: " + err.Error()
	}
	return text
}

func (x *scriptRunner) machine(s scriptStep) (string, error) {
	r := s.resources()
	topology := gpu.MachineTopology{CPU: r.CPU, Memory: r.Memory, Cores: make([]gpu.CPUCore, r.CPU/1000)}
	for i := range r.GPUs {
		topology.Devices = append(topology.Devices,
			gpu.Device{UUID: fmt.Sprintf("GPU-%d", i), Memory: 8 * roost.GiB, Health: gpu.HealthyDevice()})
	}
	units, err := gpu.CutUnits(topology, gpu.LayoutConfig{Shape: gpu.SharedLayout})
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
	x.cell.Machines = append(x.cell.Machines, match.NewMachine(s.Args[0], 1, 1, ad))
	return "", nil
}

func (x *scriptRunner) addRunning(s scriptStep) (string, error) {
	for i, m := range x.cell.Machines {
		if m.Name != s.Args[0] {
			continue
		}
		p, ok := m.PlaceNext(nil, gpu.DeviceRequest{Resources: s.resources()}, false)
		if !ok {
			x.test.Fatalf("line %d: there is no room", s.Line)
		}
		band, err := roost.ParsePriorityBand(cmp.Or(s.pairs["band"], "batch"))
		if err != nil {
			return "", err
		}
		at := func(key string) int64 {
			if n := s.number(key, 0); n != 0 {
				return startTime + int64(n)
			}
			return 0
		}
		c := match.MachineClaim{
			ID: uint64(len(m.Claims) + 1), Submitter: fairshare.Submitter{Owner: s.Args[1]}, Band: band,
			Resources: s.resources(), Placement: p, TaskStarted: startTime - 1000, WalltimeEnd: at("ends"),
			PredictedEnd: at("expected"), Job: s.pairs["job"],
		}
		if s.pairs["fresh"] != "" {
			c.TaskStarted, c.Job = 0, ""
		}
		if x.cell.Machines[i], err = m.AfterClaimsEnd(nil, c); err != nil {
			return "", err
		}
	}
	return "", nil
}

// ask returns the request that a command describes.
func (x *scriptRunner) ask(s scriptStep) (*cellstate.PendingRequest, error) {
	a := &cellstate.PendingRequest{AdText: "[]", OwnWanted: s.number("wanted", 1), Queue: s.pairs["queue"]}
	if len(s.Input) > 0 {
		a.AdText = "[Requirements = " + strings.Join(s.Input, " ") + "]"
	}
	if l := s.pairs["limit"]; l != "" {
		a.AdText = fmt.Sprintf("[ConcurrencyLimits = %q]", l)
	}
	id, _ := strconv.ParseUint(s.Args[0], 10, 64)
	a.Key, a.Submitter = match.RequestKey{Schedd: "s", ID: cmp.Or(id, 999)},
		fairshare.Submitter{Owner: cmp.Or(s.pairs["owner"], "ann")}
	a.Gang, a.Oldest = s.number("gang", 0), int64(id)
	a.Walltime, a.PredictedRuntime = time.Duration(s.number("walltime", 0))*time.Second,
		time.Duration(s.number("predicted", 0))*time.Second
	var err error
	if a.Band, err = roost.ParsePriorityBand(cmp.Or(s.pairs["band"], "batch")); err == nil {
		a.Class, err = match.NewClass(a.AdText, a.Submitter, a.Band, s.resources())
	}
	return a, err
}

func (x *scriptRunner) request(s scriptStep) (string, error) {
	a, err := x.ask(s)
	x.cell.Requests = append(x.cell.Requests, a)
	return "", err
}

func (x *scriptRunner) job(s scriptStep) (string, error) {
	x.cell.Jobs = append(x.cell.Jobs, cellstate.JobRow{
		ID: s.Args[0], Request: uint64(s.number("request", 0)), Waiting: s.number("waiting", 0),
		Running: s.number("running", 0), Priority: int32(s.number("priority", 0)),
		Submitted: int64(len(x.cell.Jobs)), Owner: s.pairs["owner"], Band: s.pairs["band"], OpenTasks: s.number("open",
			0), MaxRunning: s.number("most", 0), WaitReason: s.pairs["why"], Refused: s.pairs["why"] == "refused",
	})
	x.cell.Jobs[len(x.cell.Jobs)-1].RequestedResources(s.resources())
	return "", nil
}

func (x *scriptRunner) setPolicy(s scriptStep) (string, error) {
	return "", applyCommand(x.cell, ledger.AdminCommand{Verb: ledger.VerbSet, Kind: ledger.ObjectKind(s.Args[0]),
		Object: []byte(strings.Join(s.Input, "\n"))})
}

// runTwice asks a question twice and compares the answers.
func runTwice[T any](x *scriptRunner, ask func() (T, error), digest func(T) uint64) (T, error) {
	x.test.Helper()
	first, err := ask()
	second, again := ask()
	if (err == nil) != (again == nil) || err == nil && digest(first) != digest(second) {
		x.test.Errorf("asked twice: %+v, %v and %+v, %v", first, err, second, again)
	}
	return first, err
}

func (x *scriptRunner) answerRoom(s scriptStep) (string, error) {
	a, err := x.ask(s)
	if err != nil {
		return "", err
	}
	where := map[string]Scope{"now": FreeNow, "behind": AfterWaiting, "empty": EmptyCell}[s.Args[0]]
	room, err := runTwice(x, func() (*RoomAnswer, error) {
		return RoomNow(x.cell, a, where)
	}, func(r *RoomAnswer) uint64 { return r.Digest })
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d fit", room.Tasks)
	if room.WithPreemption > 0 {
		fmt.Fprintf(&b, ", and %d if %d make room", room.WithPreemption, room.Evicted)
	}
	for _, on := range room.Machines {
		fmt.Fprintf(&b, "\n%s: %d", on.Machine, on.Tasks)
		if on.WithPreemption > 0 {
			fmt.Fprintf(&b, ", and %d if others make room", on.WithPreemption)
		}
	}
	for _, r := range room.Explanation.Reasons {
		fmt.Fprintf(&b, "\n%d %s", r.Machines, r.Text)
	}
	return b.String(), nil
}

func sinceStart(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return fmt.Sprint(t.Unix() - startTime)
}

func (x *scriptRunner) answerWhen(s scriptStep) (string, error) {
	lengths := ByWalltime
	if len(s.Args) > 1 {
		lengths = ByPrediction
	}
	return x.answer(runTwice(x, func() (*StartAnswer, error) {
		return WhenStarts(x.cell, s.Args[0], lengths)
	}, func(a *StartAnswer) uint64 { return a.Digest }))
}

func (x *scriptRunner) answer(a *StartAnswer, err error) (string, error) {
	if err != nil {
		return "", err
	}
	text := fmt.Sprintf("%d tasks behind %d, the first at %s, the last at %s, %d endless", a.Tasks, a.Ahead,
		sinceStart(a.First), sinceStart(a.Last), a.EndUnknown)
	if a.Explanation != nil {
		text += "\n" + a.Explanation.Summary
	}
	return strings.Join(append([]string{text}, strings.Fields(a.StoppedReason)...), " "), nil
}

func (x *scriptRunner) newScript(s scriptStep) (string, error) {
	ad := classad.New()
	ad.SetString(roost.AttrCmd, "/bin/true")
	r := s.resources()
	ad.SetInt(roost.AttrRequestCpus, int64(r.CPU/1000))
	ad.SetInt(roost.AttrRequestMemory, int64(r.Memory/roost.MiB))
	if w := s.number("walltime", 0); w > 0 {
		ad.SetInt(roost.AttrWalltime, int64(w))
	}
	asks, err := RequestsOfJobs(x.cell.Now, queue.CallerIdentity{User: cmp.Or(s.pairs["owner"], "ann"), UID: 1},
		[]queue.SubmitSpec{{Ad: ad, Count: s.number("tasks", 1)}})
	if err != nil {
		return "", err
	}
	return x.answer(runTwice(x, func() (*StartAnswer, error) {
		return WhenSubmitted(x.cell, asks, ByWalltime)
	}, func(a *StartAnswer) uint64 { return a.Digest }))
}

func (x *scriptRunner) compareChange(s scriptStep) (string, error) {
	var change CellChange
	for _, line := range s.Input {
		kind, object, _ := strings.Cut(line, " ")
		c := ledger.AdminCommand{Verb: ledger.VerbSet, Kind: ledger.ObjectKind(kind), Object: []byte(object)}
		if name, removed := strings.CutPrefix(object, "-"); removed {
			c = ledger.AdminCommand{Verb: ledger.VerbRemove, Kind: ledger.ObjectKind(kind), Name: name}
		}
		change.AdminCommands = append(change.AdminCommands, c)
	}
	if m := s.pairs["remove"]; m != "" {
		change.Remove = strings.Split(m, ",")
	}
	if like, n, ok := strings.Cut(s.pairs["add"], "*"); ok {
		count, _ := strconv.Atoi(n)
		change.Add = []MachineAddition{{like, count}}
	}
	if job := s.pairs["alter"]; job != "" {
		alter := RequestChange{Job: job}
		if s.pairs["cpus"] != "" {
			r := s.resources()
			alter.CPU, alter.Memory = &r.CPU, &r.Memory
		}
		if text := s.pairs["band"]; text != "" {
			band, err := roost.ParsePriorityBand(text)
			if err != nil {
				return "", err
			}
			alter.Band = &band
		}
		change.Alter = []RequestChange{alter}
	}
	c, err := runTwice(x, func() (*PlanComparison, error) {
		return CompareChange(x.cell, change, ByWalltime, time.Hour)
	}, func(c *PlanComparison) uint64 { return c.Digest })
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, one := range []Trajectory{c.Before, c.After} {
		fmt.Fprintf(&b, "%s: %d wait, %d start, %d evicted, mean wait %.1f, done %s\n",
			[...]string{"before", "after"}[i], one.Waiting, one.Started, one.Evicted, one.MeanWait,
			sinceStart(one.LastStart))
	}
	for _, e := range c.Evictions {
		fmt.Fprintf(&b, "evicts %s of %s on %s: %s\n", e.Claim.Job, e.Claim.Submitter, e.Machine, e.Reason)
	}
	for _, m := range c.StartChanges {
		fmt.Fprintf(&b, "request %d of %v %v: %s, now %s\n", m.Key.ID, m.Submitter, m.Jobs, sinceStart(m.Before),
			sinceStart(m.After))
	}
	for _, d := range c.Drained {
		fmt.Fprintf(&b, "%s: %d run, over by %s, %d unknown\n", d.Node, d.Running, sinceStart(d.LastEnd), d.EndUnknown)
	}
	for _, q := range c.Quotas {
		fmt.Fprintf(&b, "%s in %s asks for %s of %s, over %v\n", q.Subject, q.Band, q.Demand, q.Limit, q.Exceeded)
	}
	if len(c.AdmittedJobs) > 0 {
		fmt.Fprintf(&b, "allows %v\n", c.AdmittedJobs)
	}
	return b.String(), nil
}
