package match

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/gpu"
	"github.com/roost-batch/roost/internal/script"
	"github.com/roost-batch/roost/negotiator/fairshare"
)

// TestStories runs the scripts in testdata. Commands:
//
//	cell       begins again with an empty cell
//	machines   lines: NAME key=value…; keys cpus, memory, disk, gpus (in all),
//	           claims=OWNER:CPUS:ENDS;…, free-cpus, free-memory, free-gpus (now),
//	           ad=EXPRESSIONS to the line's end; for a machine with units also layout,
//	           cards=SIZE,SIZE…, cpu-units, reclaim=LEVEL, length, room, wait,
//	           taken=cpus=1,gpu_memory=SIZE,ends=SECONDS;cpus=2,class=stream… (with
//	           reclaim also band, reserve-cpus, reserve-memory)
//	requests   lines: NAME key=value…; keys owner, group, band, prio, oldest, n, cpus,
//	           top (units of n with that priority; all of them otherwise),
//	           memory, disk, gpus, gpu_memory, class, nowait, avoid, apart (with avoid),
//	           gang, with (the leader of its gang), run (limits; names that begin with
//	           soft are soft), walltime, predicted, since (seconds), reservation,
//	           proposed=MACHINE:UNITS,…, now=yes, ad=… to the line's end
//	forget     removes all requests
//	standing   lines: OWNER group=GROUP effective=N cpus=N floor=N ceiling=N
//	pending    lines: MACHINE cpus=N memory=SIZE gpu_memory=SIZE class=CLASS
//	           band=BAND waiting=UNIT victims=ID,… of=NUMBER of the request
//	reclaim    LEVEL: how boldly machines may reclaim; off by default
//	limits     lines: NAME total=N used=N label=WORD
//	groups     lines: NAME quota=N, or quota=N% for a dynamic one, surplus=yes
//	now        SECONDS
//	backfill   off|easy|conservative depth=N patience=DURATION
//	reserve    lines: NAME users=NAME,… groups=NAME,… nodes=NAME,… cpus=N memory=SIZE
//	           from=SECONDS until=SECONDS
//	score      NAME: how machines are chosen that are otherwise equally good
//	mix        on|off: whether bands are mixed on machines
//	domains    ATTRIBUTE…: the failure domains of production, the widest first
//	drain      lines: MACHINE from=SECONDS until=SECONDS reason=WORD
//	claims     lines: MACHINE id=N owner=NAME band=BAND cpus=N memory=SIZE gpus=N
//	           gpu_memory=SIZE class=CLASS job=ID ran=SECONDS saved=SECONDS (ago)
//	           rank=N (the machine's) can=yes leaving=yes prio=N attempt=N
//	preemption lines: cell=N (evictions in a plan), job=N (of one job),
//	           evicted=JOB:N, fair=EXPRESSION, moves=on|advise (after ten minutes),
//	           priority=STEP (after ten minutes, of tasks in their first 3 attempts)
//	beyond     lines: MACHINE NUMBER WORDS: a claim beyond a soft limit, and its text
//	starts     lines: MACHINE at=SECONDS cpus=N memory=SIZE n=UNITS: recent grants
//	plan       prints the grants and why others wait; plan whole also prints the brief
//	           form, the kinds of the reasons, and the start
func TestStories(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func(script.ScriptCommand) string {
		c := newScriptCell(t)
		return func(s script.ScriptCommand) string {
			switch s.Command {
			case "cell":
				c = newScriptCell(t)
				return "ok"
			case "machines":
				return c.addMachines(s.Input)
			case "requests":
				return c.addRequests(s.Input)
			case "forget":
				c.snapshot.Requests = nil
				return ""
			case "standing":
				return c.addShares(s.Input)
			case "pending":
				return c.addPending(s.Input)
			case "groups":
				return c.addGroups(s.Input)
			case "reclaim":
				level, err := roost.ParseReclaimLevel(s.Args[0])
				c.checkNoError(err)
				c.snapshot.Reclaim = level
				return "ok"
			case "limits":
				return c.addLimits(s.Input)
			case "claims":
				return c.addClaims(s.Input)
			case "preemption":
				return c.setPreemption(s.Input)
			case "beyond":
				return c.setOverSoftLimit(s.Input)
			case "starts":
				return c.addStarts(s.Input)
			case "plan":
				return c.runCycle(len(s.Args) > 0)
			}
			return c.applyLaterCommand(s)
		}
	})
}

type scriptCell struct {
	t        *testing.T
	matcher  *Matcher
	snapshot Snapshot
	names    map[RequestKey]string
	sequence uint64
	tenants  map[string][]classad.Value // by machine
}

func newScriptCell(t *testing.T) *scriptCell {
	return &scriptCell{t: t, matcher: NewMatcher(), names: map[RequestKey]string{},
		tenants: map[string][]classad.Value{}, snapshot: Snapshot{
			Shares: map[fairshare.Submitter]SubmitterShare{}, Pending: map[string][]PendingGrant{},
			Limits: map[string]ConcurrencyLimit{}, Now: time.Unix(0, 0).UTC(),
		}}
}

// words splits a line into its name, its key=value pairs, and the expressions after ad=.
func words(line string) (name string, pairs map[string]string, ad string) {
	line, ad, _ = strings.Cut(line, " ad=")
	fields := strings.Fields(line)
	pairs = map[string]string{}
	for _, f := range fields[1:] {
		k, v, _ := strings.Cut(f, "=")
		pairs[k] = v
	}
	return fields[0], pairs, ad
}

func (c *scriptCell) resources(pairs map[string]string, prefix string, def roost.Resources) roost.Resources {
	r := def
	if v, ok := pairs[prefix+"cpus"]; ok {
		f, err := strconv.ParseFloat(v, 64)
		c.checkNoError(err)
		r.CPU = roost.MilliCPU(f * 1000)
	}
	for key, field := range map[string]*roost.Bytes{"memory": &r.Memory, "disk": &r.Disk} {
		if v, ok := pairs[prefix+key]; ok {
			size, err := roost.ParseBytes(v)
			c.checkNoError(err)
			*field = size
		}
	}
	if v, ok := pairs[prefix+"gpus"]; ok {
		r.GPUs = c.number(v)
	}
	if v, ok := pairs[prefix+"gpu_memory"]; ok {
		size, err := roost.ParseBytes(v)
		c.checkNoError(err)
		r.GPUs, r.GPUMemory = max(r.GPUs, 1), size
	}
	return r
}

func (c *scriptCell) number(s string) int {
	if s == "" {
		return 0
	}
	n, err := strconv.Atoi(s)
	c.checkNoError(err)
	return n
}

func (c *scriptCell) realNumber(s string) float64 {
	if s == "" {
		return 0
	}
	f, err := strconv.ParseFloat(s, 64)
	c.checkNoError(err)
	return f
}

func (c *scriptCell) checkNoError(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *scriptCell) addMachines(lines []string) string {
	for _, line := range lines {
		name, pairs, exprs := words(line)
		total := c.resources(pairs, "", roost.Resources{CPU: 1000, Memory: roost.GiB, Disk: roost.GiB})
		free := c.resources(pairs, "free-", total)
		c.sequence++
		claims := c.claims(pairs, &free)
		ad := machineAd(c.t, name, total, free, exprs)
		if len(claims) > 0 {
			ad.SetValue(roost.AttrClaims, classad.ListValue(claims...))
		}
		if pairs["layout"] != "" {
			c.cutUnits(pairs, total, ad).Describe(ad)
			ad.SetString(roost.AttrReclaim, pairs["reclaim"])
		}
		m := NewMachine(name, 1, c.sequence, ad)
		c.snapshot.Machines = slices.DeleteFunc(c.snapshot.Machines, func(o *Machine) bool { return o.Name == name })
		c.snapshot.Machines = append(c.snapshot.Machines, m)
	}
	slices.SortFunc(c.snapshot.Machines, func(a, b *Machine) int { return strings.Compare(a.Name, b.Name) })
	return fmt.Sprintf("%d machines", len(c.snapshot.Machines))
}

// cutUnits makes the resource units of a machine, with some of them taken.
func (c *scriptCell) cutUnits(pairs map[string]string, total roost.Resources, ad *classad.Ad) *gpu.FreeResources {
	topology := gpu.MachineTopology{Memory: total.Memory}
	for i := range total.CPU / 1000 {
		topology.Cores = append(topology.Cores, gpu.CPUCore{ID: int(i), NUMANode: -1})
	}
	devices := strings.FieldsFunc(pairs["cards"], func(r rune) bool { return r == ',' })
	for i, device := range devices {
		size, err := roost.ParseBytes(device)
		c.checkNoError(err)
		topology.Devices = append(topology.Devices,
			gpu.Device{UUID: fmt.Sprint("GPU-", i), Index: i, Memory: size, NUMANode: -1, Health: gpu.HealthyDevice()})
	}
	shape, err := gpu.ParseUnitLayout(pairs["layout"])
	c.checkNoError(err)
	units, err := gpu.CutUnits(topology, gpu.LayoutConfig{Shape: shape, CPUUnits: c.number(pairs["cpu-units"])})
	c.checkNoError(err)
	f := gpu.NewFree(units, total.Disk)
	f.SetReclaim(pairs["reclaim"] != "")
	var claims []classad.Value
	for _, task := range strings.Split(pairs["taken"], ";") {
		if task != "" {
			_, words, _ := words("x " + strings.ReplaceAll(task, ",", " "))
			r := c.resources(words, "", roost.Resources{})
			p, err := f.PlaceOrExplain(gpu.DeviceRequest{Resources: r, Class: c.class(words),
				MayReclaim: words["band"] == "batch"})
			c.checkNoError(err)
			f.TakePlacement(p)
			reserved := c.resources(words, "reserve-", r)
			f.SetUsageEstimate(&p, reserved.CPU, reserved.Memory)
			if words["ends"] != "" {
				claims = append(claims, c.claimOf(len(claims)+1, words, p))
			}
		}
	}
	if len(claims) > 0 {
		ad.SetValue(roost.AttrClaims, classad.ListValue(claims...))
	}
	for i := range f.Len() {
		q := gpu.UnitQueue{Length: c.number(pairs["length"]), FreePlaces: c.number(pairs["room"])}
		if pairs["wait"] != "" {
			q.WaitSeconds, err = strconv.ParseFloat(pairs["wait"], 64)
			c.checkNoError(err)
		}
		f.SetQueue(i, q)
	}
	return f
}

func (c *scriptCell) class(pairs map[string]string) gpu.AppClass {
	class, err := gpu.ParseClass(pairs["class"])
	c.checkNoError(err)
	return class
}

func machineAd(t testing.TB, name string, total, free roost.Resources, exprs string) *classad.Ad {
	ad, err := classad.Parse("[" + exprs + "]")
	if err != nil {
		t.Fatal(err)
	}
	ad.SetString(roost.AttrName, name)
	for attr, n := range map[string]float64{
		roost.AttrCpus: free.CPU.Cores(), roost.AttrMemory: float64(free.Memory) / float64(roost.MiB),
		roost.AttrDisk: float64(free.Disk) / float64(roost.KiB),
		roost.AttrGpus: float64(free.GPUs), roost.AttrTotalCpus: total.CPU.Cores(),
		roost.AttrTotalMemory: float64(total.Memory) / float64(roost.MiB),
		roost.AttrTotalDisk:   float64(total.Disk) / float64(roost.KiB), roost.AttrTotalGpus: float64(total.GPUs),
	} {
		ad.SetReal(attr, n)
	}
	return ad
}

func (c *scriptCell) addRequests(lines []string) string {
	for _, line := range lines {
		name, pairs, exprs := words(line)
		band, who := roost.BatchBand, fairshare.Submitter{Group: pairs["group"], Owner: pairs["owner"]}
		if pairs["band"] != "" {
			var err error
			band, err = roost.ParsePriorityBand(pairs["band"])
			c.checkNoError(err)
		}
		r := c.resources(pairs, "", roost.Resources{CPU: 1000})
		if c.class(pairs) == gpu.StreamClass {
			exprs += `; AppClass = "stream"`
		}
		class, err := NewClass("["+exprs+"]", who, band, r)
		c.checkNoError(err)
		req := &Request{
			Key: RequestKey{"s", uint64(len(c.names) + 1)}, Submitter: who, Band: band,
			Priority: int32(c.number(pairs["prio"])), PriorityUnits: max(1, c.number(pairs["n"])),
			Oldest: int64(c.number(pairs["oldest"])), Wanted: max(1, c.number(pairs["n"])),
			NoQueue: c.number(pairs["nowait"]), Class: class,
			Explain: true, Gang: c.number(pairs["gang"]),
			Walltime:         time.Duration(c.number(pairs["walltime"])) * time.Second,
			PredictedRuntime: time.Duration(c.number(pairs["predicted"])) * time.Second,
			Reservation:      pairs["reservation"], Now: pairs["now"] == "yes",
			WaitingSince: int64(c.number(pairs["since"])),
		}
		if pairs["top"] != "" {
			req.PriorityUnits = c.number(pairs["top"])
		}
		if pairs["avoid"] != "" {
			req.Avoid = map[string]string{pairs["avoid"]: "no room"}
		}
		if pairs["apart"] != "" {
			req.Avoid[pairs["apart"]] = "kept apart: 3 of its tasks keep failing there"
		}
		req.SelfPlacements = c.readSelfPlacements(pairs["proposed"])
		for _, name := range strings.FieldsFunc(pairs["run"], func(r rune) bool { return r == ',' }) {
			limit, count, many := strings.Cut(name, "*")
			take := LimitRequest{Limit: limit, Count: 1}
			if take.PerGang = count == "once"; many && !take.PerGang {
				take.Count = c.number(count)
			}
			if strings.HasPrefix(limit, "soft") {
				req.SoftLimits = append(req.SoftLimits, take)
			} else {
				req.RunLimits = append(req.RunLimits, take)
			}
		}
		c.names[req.Key] = name
		if lead := pairs["with"]; lead != "" {
			for _, r := range c.snapshot.Requests {
				if c.names[r.Key] == lead {
					r.Parts, req.Gang = append(r.Parts, req), r.Gang
				}
			}
			continue
		}
		c.snapshot.Requests = append(c.snapshot.Requests, req)
	}
	return fmt.Sprintf("%d requests", len(c.snapshot.Requests))
}

func (c *scriptCell) addShares(lines []string) string {
	for _, line := range lines {
		name, pairs, _ := words(line)
		effective := c.realNumber(cmp.Or(pairs["effective"], "500"))
		c.snapshot.Shares[fairshare.Submitter{Group: pairs["group"], Owner: name}] = SubmitterShare{
			EffectivePriority: effective, Usage: c.resources(pairs, "", roost.Resources{}),
			Floor: c.realNumber(pairs["floor"]), Ceiling: c.realNumber(pairs["ceiling"]),
		}
	}
	return "ok"
}

func (c *scriptCell) addPending(lines []string) string {
	for _, line := range lines {
		name, pairs, _ := words(line)
		c.snapshot.Pending[name] = append(c.snapshot.Pending[name], PendingGrant{
			Request: RequestKey{"s", uint64(c.number(pairs["of"]))}, Resources: c.resources(pairs, "",
				roost.Resources{}), Class: c.class(pairs), MayReclaim: pairs["band"] == "batch",
			Waiting: pairs["waiting"] != "", Unit: c.number(pairs["waiting"]),
			Victims: c.numbers(pairs["victims"]), Ports: c.ports(pairs["ports"]),
		})
	}
	return "ok"
}

func (c *scriptCell) ports(text string) (list []uint16) {
	for _, n := range c.numbers(text) {
		list = append(list, uint16(n))
	}
	return list
}

func (c *scriptCell) addLimits(lines []string) string {
	for _, line := range lines {
		name, pairs, _ := words(line)
		c.snapshot.Limits[name] = ConcurrencyLimit{Total: c.number(pairs["total"]), Used: c.number(pairs["used"]),
			Label: strings.ReplaceAll(pairs["label"], "_", " ")}
	}
	return "ok"
}

func (c *scriptCell) addGroups(lines []string) string {
	c.snapshot.Groups = nil
	for _, line := range lines {
		name, pairs, _ := words(line)
		g := fairshare.AccountingGroup{Name: name, AcceptsSurplus: pairs["surplus"] != ""}
		quota, dynamic := strings.CutSuffix(pairs["quota"], "%")
		if g.Dynamic, g.Quota = dynamic, c.realNumber(quota); dynamic {
			g.Quota /= 100
		}
		c.snapshot.Groups = append(c.snapshot.Groups, g)
	}
	return "ok"
}

func (c *scriptCell) addStarts(lines []string) string {
	for _, line := range lines {
		name, pairs, _ := words(line)
		c.snapshot.RecentStarts = append(c.snapshot.RecentStarts, RecentStart{int64(c.number(pairs["at"])), name,
			c.resources(pairs, "", roost.Resources{}), c.number(pairs["n"])})
	}
	return "ok"
}

// runCycle makes a plan and returns it as text.
func (c *scriptCell) runCycle(whole bool) string {
	plan := c.matcher.Plan(&c.snapshot)
	checkPlan(c.t, &c.snapshot, plan)
	if again := NewMatcher().Plan(newMatcherCopy(&c.snapshot)); grantsText(again.Grants) != grantsText(plan.Grants) {
		c.t.Fatalf("what the matcher remembers misleads it. It plans:\n%sand without its memory:\n%s",
			grantsText(plan.Grants), grantsText(again.Grants))
	}
	var b strings.Builder
	for _, g := range plan.Grants {
		fmt.Fprintf(&b, "%s: %d on %s", c.names[g.Request.Key], g.Units, g.Machine.Name)
		if g.Gang > 0 {
			fmt.Fprintf(&b, ", gang %d", g.Gang)
		}
		if g.Waiting {
			fmt.Fprintf(&b, ", waiting for unit %d, %g s", g.Unit, g.WaitSeconds)
		}
		b.WriteString(victimsText(&g) + "\n")
	}
	for _, x := range plan.Conflicts {
		fmt.Fprintf(&b, "%s: conflict: %d on %s: %s\n", c.names[x.Request.Key], x.Units, x.Machine, x.Why)
	}
	for _, u := range plan.Unplaced {
		fmt.Fprintf(&b, "%s: %d wait: %s\n", c.names[u.Request.Key], u.Missing, u.Explanation.Summary)
		e := u.Explanation
		checkExplanation(c.t, e)
		if whole {
			fmt.Fprintf(&b, "  %s\n  %d before it: %d of higher bands, %d of its own\n", e.Brief, e.UnitsAhead,
				e.HigherAhead, e.OwnAhead)
		}
		switch {
		case !e.Start.IsZero() && whole:
			fmt.Fprintf(&b, "  starts at %d, by %v: %s\n", e.Start.Unix(), e.Certainty, e.Basis)
		case e.Certainty == ByWalltime:
			fmt.Fprintf(&b, "  starts at %d, by %v\n", e.Start.Unix(), e.Certainty)
		case whole:
			fmt.Fprintf(&b, "  start unknown: %s\n", e.Basis)
		}
		for _, r := range u.Explanation.Reasons {
			kind := ""
			if whole && !strings.HasPrefix(r.Text, r.Kind.String()) {
				kind = fmt.Sprintf(" (%v)", r.Kind)
			}
			fmt.Fprintf(&b, "  %d %s%s\n", r.Machines, r.Text, kind)
		}
		for _, c := range u.Explanation.Conditions {
			fmt.Fprintf(&b, "  condition: %d pass, %d fail, %d undefined, %d error, %d alone: %s", c.Pass, c.Fail,
				c.Undefined, c.Error, c.OnlyObstacle, c.Text)
			if c.Expanded != "" {
				fmt.Fprintf(&b, ", that is %s", c.Expanded)
			}
			if c.OfMachine {
				b.WriteString(", says the machine")
			}
			b.WriteByte('\n')
		}
		for _, text := range append(u.Explanation.Conflicts, u.Explanation.Nearest...) {
			fmt.Fprintf(&b, "  %s\n", text)
		}
		for _, a := range u.Explanation.Advice {
			fmt.Fprintf(&b, "  advice: %s\n", a)
		}
	}
	return b.String()
}

// readSelfPlacements reads the proposals of a request: MACHINE:UNITS or MACHINE:wait,
// separated by commas.
func (c *scriptCell) readSelfPlacements(text string) (all []SelfPlacement) {
	for _, one := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		name, units, _ := strings.Cut(one, ":")
		p := SelfPlacement{Machine: name, Units: 1, Waiting: units == "wait"}
		if !p.Waiting {
			p.Units = c.number(units)
		}
		all = append(all, p)
	}
	return all
}
