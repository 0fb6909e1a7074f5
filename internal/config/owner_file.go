package config

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/startd/desktop/policy"
)

// OwnerFileName is the default path of the machine owner's own file.
const OwnerFileName = "/etc/roost/owner.hcl"

// OwnerFile is the path of the machine owner's own file.
type OwnerFile struct{ File string }

// OwnerRules are the settings of the machine owner's own file, which override the node
// file and every policy. The zero value sets nothing.
type OwnerRules struct {
	Paused bool
	// names of users who may pause and resume the machine, beside root and the user who
	// sits at it
	Owners      []string
	StartAfter  time.Duration // 0: as in the policy
	ResumeAfter time.Duration
	LeaveAfter  time.Duration
	Hours       []policy.WeeklyHours // when nothing runs at all
	CPU         roost.MilliCPU       // the most that is lent; 0: as the node file has it
	Memory      roost.Bytes          // likewise
	OnBattery   bool                 // work goes on when the machine runs on its battery
	Exclusive   []string             // programs, by name, during which nothing runs
	ForeignCPU  roost.MilliCPU       // of others' work, from which on the machine counts as used

	Start, Suspend, Continue, Preempt, Kill string // ClassAd expressions; empty: none

	Warnings []string // settings that may not be intended, for display; not an error
}

// DefaultForeignCPU is the default foreign load from which a machine counts as used: half
// a core, HTCondor's HighLoad.
const DefaultForeignCPU roost.MilliCPU = 500

// maxExclusive bounds the program names, which are searched all the time.
const maxExclusive = 100

// LoadOwner reads the machine owner's own file. A missing file sets nothing and is no
// error. Other errors are of the kinds of [Load]; while there is one the machine must not
// run tasks.
func LoadOwner(file string) (OwnerRules, error) {
	text, err := readFile("owner's file", file)
	if errors.Is(err, fs.ErrNotExist) {
		return OwnerRules{ForeignCPU: DefaultForeignCPU}, nil
	}
	if err != nil {
		return OwnerRules{}, err
	}
	p := newProblems(file, text)
	if at, ok := isTooDeep(text); ok {
		p.addProblem(at, "", "brackets are nested more than %d deep", maxNesting)
		return OwnerRules{}, p.asError()
	}
	parsed, diags := hclsyntax.ParseConfig(text, file, hcl.InitialPos)
	if diags.HasErrors() {
		p.addDiagnostics(diags)
		return OwnerRules{}, p.asError()
	}
	r := readOwner(p, parsed.Body.(*hclsyntax.Body))
	if err := p.asError(); err != nil {
		return OwnerRules{}, err
	}
	r.Warnings = p.warningTexts()
	if r.ForeignCPU == 0 {
		r.ForeignCPU = DefaultForeignCPU
	}
	return r, nil
}

func readOwner(p *problemList, body *hclsyntax.Body) OwnerRules {
	var r OwnerRules
	s := &blockReader{problemList: p, body: body, title: "owner's file"}
	s.readBool("paused", &r.Paused)
	s.readList("owners", `"ann"`, &r.Owners, func(text string, at hcl.Range) { s.checkName("owners", text, at) })
	s.readPositive("start_after", `"10m"`, &r.StartAfter)
	s.readPositive("resume_after", `"5m"`, &r.ResumeAfter)
	s.readPositive("leave_after", `"10m"`, &r.LeaveAfter)
	var hours []string
	s.readList("hours", `"Mon-Fri 08:00-18:00"`, &hours, func(text string, at hcl.Range) {
		h, err := policy.ParseHours(text)
		if err != nil {
			s.addProblem(at, `write them as hours = ["Mon-Fri 08:00-18:00"]`, "%v", err)
			return
		}
		r.Hours = append(r.Hours, h)
	})
	s.readCores("cpus", &r.CPU)
	s.readSize("memory", `"8GiB"`, &r.Memory)
	s.readBool("on_battery", &r.OnBattery)
	s.readList("exclusive", `"steam", "obs"`, &r.Exclusive, func(text string, at hcl.Range) {
		if len(r.Exclusive) == maxExclusive {
			s.addProblem(at, "", "exclusive: there are more than %d", maxExclusive)
		}
	})
	s.readCores("foreign_cpu", &r.ForeignCPU)
	for _, e := range []struct {
		name string
		to   *string
	}{{"start", &r.Start}, {"suspend", &r.Suspend}, {"continue", &r.Continue}, {"preempt", &r.Preempt},
		{"kill", &r.Kill}} {
		s.readPolicyExpression(e.name, e.to, nil)
	}
	s.reportUnknown()
	return r
}

// readPositive reads a duration that is not 0, because 0 means the default elsewhere.
func (s *blockReader) readPositive(name, example string, to *time.Duration) {
	s.readSetting(name, example, func(text string) (err error) {
		if *to, err = roost.ParseDuration(text); err == nil && *to == 0 {
			err = fmt.Errorf("it is 0")
		}
		return err
	})
}

// PolicyRules returns the owner's rules in the form of the startd's policy.
func (r *OwnerRules) PolicyRules() policy.DesktopRules {
	to := policy.DesktopRules{
		Paused: r.Paused, StartDelay: r.StartAfter, ResumeDelay: r.ResumeAfter, VacateDelay: r.LeaveAfter,
		NoRunHours: r.Hours, RunsOnBattery: r.OnBattery,
		CPU: r.CPU, Memory: r.Memory,
	}
	for _, e := range []struct {
		src string
		to  **classad.Expr
	}{{r.Start, &to.Start}, {r.Suspend, &to.Suspend}, {r.Continue, &to.Continue}, {r.Preempt, &to.Preempt},
		{r.Kill, &to.Kill}} {
		if e.src == "" {
			continue
		}
		if parsed, err := classad.ParseExpr(e.src); err == nil { // it was checked when the file was read
			*e.to = &parsed
		}
	}
	return to
}
