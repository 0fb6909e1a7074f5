package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/script"
)

// TestStories runs the scripts in testdata. Each command runs at the time since boot
// given after "at", or when the last step ended. Commands:
//
//	machine PRESET [lines: settings of the node file, as in start = …; attributes, as in
//	    ad Name = …]
//	signs [input=DUR console=DUR busy=WORD foreign=CORES … asleep, battery, hot, game,
//	    paused=BY]   the observations, with input so long ago
//	rules [lines: start_after 20m, hours Mon-Fri 08:00-18:00, start = …, paused,
//	    on_battery; broken TEXT]
//	tenants [lines: ID running gpus=N memory=4GiB savable began=N Name=value…]
//	wall TIME
//	pass DUR               calls Todo whenever it is due
//	lost, show, ad, accepts Name=value…
func TestStories(t *testing.T) {
	script.Run(t, "testdata/*.txt", func(t *testing.T) func(script.ScriptCommand) string {
		return (&scriptRunner{t: t}).step
	})
}

type scriptRunner struct {
	t            *testing.T
	core         *PolicyCore
	now          roost.BootTime
	wall         time.Time // at now
	nextCheck    roost.BootTime
	observations GuardObservations
}

func (s *scriptRunner) step(step script.ScriptCommand) string {
	step.Args = slices.Clone(step.Args)
	for i, arg := range step.Args {
		if arg == "at" && i+1 < len(step.Args) {
			until := s.duration(step.Args[i+1])
			s.wall = s.wall.Add(until - s.now)
			s.now = until
			step.Args = slices.Delete(step.Args, i, i+2)
			break
		}
	}
	if step.Command != "machine" && s.core == nil {
		s.t.Fatalf("line %d: no machine", step.Line)
	}
	switch step.Command {
	case "machine":
		return s.machine(step)
	case "signs":
		s.observe(step.Args)
	case "rules":
		s.rules(step)
	case "tenants":
		s.setClaims(step)
	case "lost":
		s.core.GuardLost(s.now)
	case "wall":
		wall, err := time.Parse("2006-01-02T15:04", step.Args[0])
		if err != nil {
			s.t.Fatal(err)
		}
		s.wall = wall
		s.core.SetWall(s.now, wall)
	case "pass":
		return s.advanceTime(s.duration(step.Args[0]))
	case "show":
		return s.describeState()
	case "ad":
		return s.ad(step.Args)
	case "accepts":
		ok, why := s.core.Accepts(s.job(step.Args))
		return fmt.Sprint(ok, " ", why)
	case "todo":
	default:
		s.t.Fatalf("line %d: no command %s", step.Line, step.Command)
	}
	return s.todo()
}

func (s *scriptRunner) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *scriptRunner) machine(step script.ScriptCommand) string {
	set, ad := PolicySettings{Preset: step.Args[0]}, classad.New()
	ad.SetInt(roost.AttrTotalMemory, 16384)
	for _, line := range step.Input {
		name, src, _ := strings.Cut(line, " = ")
		if attr, ok := strings.CutPrefix(name, "ad "); ok {
			if err := ad.SetExpr(attr, src); err != nil {
				s.t.Fatal(err)
			}
			continue
		}
		switch name {
		case "start_after":
			set.StartAfter = s.duration(src)
		case "resume_after":
			set.ResumeAfter = s.duration(src)
		case "leave_after":
			set.LeaveAfter = s.duration(src)
		case "vacate_time":
			set.Vacate = s.duration(src)
		default:
			*map[string]*string{"start": &set.Start, "suspend": &set.Suspend, "continue": &set.Continue,
				"preempt": &set.Preempt, "kill": &set.Kill}[name] = src
		}
	}
	p, err := NewPolicy(set)
	if err != nil {
		return err.Error()
	}
	s.now, s.wall = time.Hour, time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC) // a Monday, at night
	s.core = New(PolicyOptions{Policy: p, Name: "n1", Ad: ad})
	s.core.SetWall(s.now, s.wall)
	return s.todo()
}

func (s *scriptRunner) observe(args []string) {
	sg := GuardObservations{Input: s.observations.Input, Console: s.observations.Console}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		number, _ := strconv.ParseFloat(value, 64)
		switch name {
		case "input":
			sg.Input = s.now - s.duration(value)
			sg.Console = sg.Input
		case "terminal":
			sg.Input = s.now - s.duration(value)
		case "busy":
			sg.OwnerUseReason = strings.ReplaceAll(value, "_", " ")
		case "foreign":
			sg.ForeignCPU = number
			if sg.ForeignSince = s.observations.ForeignSince; sg.ForeignSince == 0 {
				sg.ForeignSince = s.now
			}
		case "load":
			sg.Load = number
		case "use":
			sg.ForeignCPU = number
		case "pressure":
			sg.MemoryPressure = number
		case "available":
			sg.MemoryAvailable, _ = roost.ParseBytes(value)
		case "battery":
			sg.OnBattery = true
		case "hot":
			sg.Hot = true
		case "game":
			sg.ExclusiveProgram = true
		case "asleep":
			sg.Asleep = true
		case "paused":
			sg.Pause = &PauseOrder{By: value}
		default:
			s.t.Fatalf("no sign %s", name)
		}
	}
	s.observations = sg
	s.core.Observe(s.now, s.wall, sg)
}

func (s *scriptRunner) rules(step script.ScriptCommand) {
	var r DesktopRules
	for _, line := range step.Input {
		name, value, _ := strings.Cut(line, " ")
		switch name {
		case "broken":
			s.core.SetRules(s.now, DesktopRules{}, fmt.Errorf("%s", value))
			return
		case "paused":
			r.Paused = true
		case "on_battery":
			r.RunsOnBattery = true
		case "start_after":
			r.StartDelay = s.duration(value)
		case "resume_after":
			r.ResumeDelay = s.duration(value)
		case "leave_after":
			r.VacateDelay = s.duration(value)
		case "hours":
			h, err := ParseHours(value)
			if err != nil {
				s.t.Fatal(err)
			}
			r.NoRunHours = append(r.NoRunHours, h)
		default:
			e, err := classad.ParseExpr(strings.TrimPrefix(value, "= "))
			if err != nil {
				s.t.Fatal(err)
			}
			*map[string]**classad.Expr{"start": &r.Start, "suspend": &r.Suspend, "continue": &r.Continue,
				"preempt": &r.Preempt, "kill": &r.Kill}[name] = &e
		}
	}
	s.core.SetRules(s.now, r, nil)
}

func (s *scriptRunner) job(words []string) *classad.Ad {
	ad := classad.New()
	for _, w := range words {
		name, src, _ := strings.Cut(w, "=")
		if err := ad.SetExpr(name, src); err != nil {
			s.t.Fatal(err)
		}
	}
	return ad
}

func (s *scriptRunner) setClaims(step script.ScriptCommand) {
	var all []PolicyClaim
	for _, line := range step.Input {
		words := strings.Fields(line)
		id, err := strconv.ParseUint(words[0], 10, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		tn, job := PolicyClaim{ID: id}, []string{}
		if old, ok := slices.BinarySearchFunc(s.core.claims, id, byID); ok {
			tn.AttemptStarted = s.core.claims[old].AttemptStarted
		}
		for _, w := range words[1:] {
			name, value, _ := strings.Cut(w, "=")
			switch name {
			case "running":
				tn.Running = true
				if tn.AttemptStarted == 0 {
					tn.AttemptStarted = s.now
				}
			case "again":
				tn.Running, tn.AttemptStarted = true, s.now
			case "frozen":
				tn.Frozen = true
			case "savable":
				tn.CanCheckpoint = true
			case "gpus":
				tn.GPUs, _ = strconv.Atoi(value)
			default:
				job = append(job, w)
			}
		}
		tn.Job = s.job(job)
		all = append(all, tn)
	}
	s.core.SetClaims(s.now, all)
}

// todo calls Todo twice, as the second call must have no effects.
func (s *scriptRunner) todo() string {
	effects, wake := s.core.Todo(s.now)
	s.core.check()
	if again, later := s.core.Todo(s.now); len(again) > 0 || later != wake {
		s.t.Fatalf("at %v: asked again: %v, wake %v, was %v", s.now, again, later, wake)
	}
	s.nextCheck = wake
	var b strings.Builder
	for _, o := range effects {
		fmt.Fprintf(&b, "%s\n", effectText(o))
	}
	return b.String()
}

func effectText(o Effect) string {
	switch o := o.(type) {
	case FreezeClaim:
		return fmt.Sprintf("freeze %d: %s", o.ID, o.Reason)
	case ResumeClaim:
		return fmt.Sprintf("thaw %d", o.ID)
	case FreeGPU:
		return fmt.Sprintf("free the GPUs of %d: %s", o.ID, o.Reason)
	case TrimMemory:
		return fmt.Sprintf("shrink %d", o.ID)
	case VacateClaim:
		if o.AlreadyFrozen {
			return fmt.Sprintf("leave, standing still, %d: %s", o.ID, o.Reason)
		}
		return fmt.Sprintf("leave %d: %s", o.ID, o.Reason)
	case KillClaim:
		return fmt.Sprintf("kill %d: %s", o.ID, o.Reason)
	case LogTransition:
		who := "machine"
		if o.ID != 0 {
			who = fmt.Sprintf("  claim %d", o.ID)
		}
		return fmt.Sprintf("%s %s -> %s (%s)", who, o.From, o.To, o.Cause)
	case LogPolicyError:
		return "complaint: " + o.Message
	}
	return "?"
}

// advanceTime advances the time with unchanged observations. Like a guard, it sends them
// every few seconds.
func (s *scriptRunner) advanceTime(d time.Duration) string {
	var b strings.Builder
	for end := s.now + d; s.now < end; {
		next := min(s.nextCheck, end)
		s.wall = s.wall.Add(next - s.now)
		s.now = next
		if s.core.guardReported && !s.core.guardLost {
			s.core.Observe(s.now, s.wall, s.observations)
		}
		before := s.now
		if text := s.todo(); text != "" {
			fmt.Fprintf(&b, "%v\n%s", before, text)
		}
	}
	return b.String()
}

func (s *scriptRunner) describeState() string {
	ok, why := s.core.Available()
	var b strings.Builder
	fmt.Fprintf(&b, "%s willing=%v %s\n", s.core.stateText(), ok, why)
	for _, t := range s.core.claims {
		fmt.Fprintf(&b, "  claim %d %s still=%v\n", t.ID, t.stateText(), t.frozen)
	}
	return b.String()
}

func (s *scriptRunner) ad(names []string) string {
	ad := classad.New()
	s.core.Describe(ad)
	var b strings.Builder
	for name, e := range ad.All() {
		if len(names) == 0 || slices.Contains(names, name) {
			fmt.Fprintf(&b, "%s = %s\n", name, e)
		}
	}
	return b.String()
}
