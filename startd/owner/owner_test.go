package owner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/story"
)

// TestStories runs the stories of testdata. Commands, each at the instant that follows "at" (from the boot on), or when the last step ended:
//
//	machine PRESET [start|suspend|… of the node file, a line each: start = …; an attribute of the ad: ad Name = …]
//	signs [input=DUR console=DUR busy=WORD foreign=CORES … asleep, battery, hot, game, paused=BY]   input is so long ago
//	rules [lines: start_after 20m, hours Mon-Fri 08:00-18:00, start = …, paused, on_battery; broken TEXT]
//	tenants [lines: ID running gpus=N memory=4GiB savable began=N Name=value…]
//	wall TIME, pass DUR (asks whenever it is due), lost, show, ad, accepts Name=value…
func TestStories(t *testing.T) {
	story.Run(t, "testdata/*.txt", func(t *testing.T) func(story.Step) string { return (&teller{t: t}).step })
}

type teller struct {
	t     *testing.T
	c     *Core
	now   Instant
	wall  time.Time // at now
	wake  Instant
	signs Signs
}

func (s *teller) step(step story.Step) string {
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
	if step.Command != "machine" && s.c == nil {
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
		s.tenants(step)
	case "lost":
		s.c.GuardLost(s.now)
	case "wall":
		wall, err := time.Parse("2006-01-02T15:04", step.Args[0])
		if err != nil {
			s.t.Fatal(err)
		}
		s.wall = wall
		s.c.SetWall(s.now, wall)
	case "pass":
		return s.pass(s.duration(step.Args[0]))
	case "show":
		return s.show()
	case "ad":
		return s.ad(step.Args)
	case "accepts":
		ok, why := s.c.Accepts(s.job(step.Args))
		return fmt.Sprint(ok, " ", why)
	case "todo":
	default:
		s.t.Fatalf("line %d: no command %s", step.Line, step.Command)
	}
	return s.todo()
}

func (s *teller) duration(text string) time.Duration {
	d, err := time.ParseDuration(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return d
}

func (s *teller) machine(step story.Step) string {
	set, ad := Settings{Preset: step.Args[0]}, classad.New()
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
			*map[string]*string{"start": &set.Start, "suspend": &set.Suspend, "continue": &set.Continue, "preempt": &set.Preempt, "kill": &set.Kill}[name] = src
		}
	}
	p, err := Make(set)
	if err != nil {
		return err.Error()
	}
	s.now, s.wall = time.Hour, time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC) // a Monday, at night
	s.c = New(Options{Policy: p, Name: "n1", Ad: ad})
	s.c.SetWall(s.now, s.wall)
	return s.todo()
}

func (s *teller) observe(args []string) {
	sg := Signs{Input: s.signs.Input, Console: s.signs.Console}
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
			sg.Busy = strings.ReplaceAll(value, "_", " ")
		case "foreign":
			sg.ForeignCPU = number
			if sg.ForeignSince = s.signs.ForeignSince; sg.ForeignSince == 0 {
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
			sg.Game = true
		case "asleep":
			sg.Asleep = true
		case "paused":
			sg.Pause = &Pause{By: value}
		default:
			s.t.Fatalf("no sign %s", name)
		}
	}
	s.signs = sg
	s.c.Observe(s.now, s.wall, sg)
}

func (s *teller) rules(step story.Step) {
	var r Rules
	for _, line := range step.Input {
		name, value, _ := strings.Cut(line, " ")
		switch name {
		case "broken":
			s.c.SetRules(s.now, Rules{}, fmt.Errorf("%s", value))
			return
		case "paused":
			r.Paused = true
		case "on_battery":
			r.OnBattery = true
		case "start_after":
			r.StartAfter = s.duration(value)
		case "resume_after":
			r.ResumeAfter = s.duration(value)
		case "leave_after":
			r.LeaveAfter = s.duration(value)
		case "hours":
			h, err := ParseHours(value)
			if err != nil {
				s.t.Fatal(err)
			}
			r.Hours = append(r.Hours, h)
		default:
			e, err := classad.ParseExpr(strings.TrimPrefix(value, "= "))
			if err != nil {
				s.t.Fatal(err)
			}
			*map[string]**classad.Expr{"start": &r.Start, "suspend": &r.Suspend, "continue": &r.Continue, "preempt": &r.Preempt, "kill": &r.Kill}[name] = &e
		}
	}
	s.c.SetRules(s.now, r, nil)
}

func (s *teller) job(words []string) *classad.Ad {
	ad := classad.New()
	for _, w := range words {
		name, src, _ := strings.Cut(w, "=")
		if err := ad.SetExpr(name, src); err != nil {
			s.t.Fatal(err)
		}
	}
	return ad
}

func (s *teller) tenants(step story.Step) {
	var all []Tenant
	for _, line := range step.Input {
		words := strings.Fields(line)
		id, err := strconv.ParseUint(words[0], 10, 64)
		if err != nil {
			s.t.Fatal(err)
		}
		tn, job := Tenant{ID: id}, []string{}
		if old, ok := slices.BinarySearchFunc(s.c.tenants, id, byID); ok {
			tn.Began = s.c.tenants[old].Began
		}
		for _, w := range words[1:] {
			name, value, _ := strings.Cut(w, "=")
			switch name {
			case "running":
				tn.Running = true
				if tn.Began == 0 {
					tn.Began = s.now
				}
			case "again":
				tn.Running, tn.Began = true, s.now
			case "frozen":
				tn.Frozen = true
			case "savable":
				tn.Savable = true
			case "gpus":
				tn.GPUs, _ = strconv.Atoi(value)
			default:
				job = append(job, w)
			}
		}
		tn.Job = s.job(job)
		all = append(all, tn)
	}
	s.c.Tenants(s.now, all)
}

// todo asks what is to be done, and asks again, which must be harmless.
func (s *teller) todo() string {
	orders, wake := s.c.Todo(s.now)
	s.c.check()
	if again, later := s.c.Todo(s.now); len(again) > 0 || later != wake {
		s.t.Fatalf("at %v: asked again: %v, wake %v, was %v", s.now, again, later, wake)
	}
	s.wake = wake
	var b strings.Builder
	for _, o := range orders {
		fmt.Fprintf(&b, "%s\n", tell(o))
	}
	return b.String()
}

func tell(o Order) string {
	switch o := o.(type) {
	case Freeze:
		return fmt.Sprintf("freeze %d: %s", o.ID, o.Reason)
	case Thaw:
		return fmt.Sprintf("thaw %d", o.ID)
	case FreeGPU:
		return fmt.Sprintf("free the GPUs of %d: %s", o.ID, o.Reason)
	case Shrink:
		return fmt.Sprintf("shrink %d", o.ID)
	case Leave:
		if o.Still {
			return fmt.Sprintf("leave, standing still, %d: %s", o.ID, o.Reason)
		}
		return fmt.Sprintf("leave %d: %s", o.ID, o.Reason)
	case Kill:
		return fmt.Sprintf("kill %d: %s", o.ID, o.Reason)
	case Moved:
		who := "machine"
		if o.ID != 0 {
			who = fmt.Sprintf("  claim %d", o.ID)
		}
		return fmt.Sprintf("%s %s -> %s (%s)", who, o.From, o.To, o.Cause)
	case Complain:
		return "complaint: " + o.What
	}
	return "?"
}

// pass lets time pass, with the signs as they are. As a guard does, it tells them every few seconds.
func (s *teller) pass(d time.Duration) string {
	var b strings.Builder
	for end := s.now + d; s.now < end; {
		next := min(s.wake, end)
		s.wall = s.wall.Add(next - s.now)
		s.now = next
		if s.c.heard && !s.c.lost {
			s.c.Observe(s.now, s.wall, s.signs)
		}
		before := s.now
		if text := s.todo(); text != "" {
			fmt.Fprintf(&b, "%v\n%s", before, text)
		}
	}
	return b.String()
}

func (s *teller) show() string {
	ok, why := s.c.Willing()
	var b strings.Builder
	fmt.Fprintf(&b, "%s willing=%v %s\n", s.c.where(), ok, why)
	for _, t := range s.c.tenants {
		fmt.Fprintf(&b, "  claim %d %s still=%v\n", t.ID, t.where(), t.still)
	}
	return b.String()
}

func (s *teller) ad(names []string) string {
	ad := classad.New()
	s.c.Describe(ad)
	var b strings.Builder
	for name, e := range ad.All() {
		if len(names) == 0 || slices.Contains(names, name) {
			fmt.Fprintf(&b, "%s = %s\n", name, e)
		}
	}
	return b.String()
}
