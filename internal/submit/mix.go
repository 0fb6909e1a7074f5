package submit

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/startd/owner"
)

// Mix is a pool that is to be simulated, and the jobs that come to it: a job file with three kinds of blocks more.
//
//	pool { managers = 3 }
//	machines "node" { count = 100, cpus = 16, memory = "64GiB" }
//	machines "desk" { policy = "desktop", owner { hours = ["Mon-Fri 08:00-18:00"] } }
//	job "short" { … }
//	load "short" { every = "10s", jobs = 1000, run = "5m", spread = 1.5 }
type Mix struct {
	Managers, Schedds int
	Machines          []Machines
	Loads             []Load
}

// Machines are some that are alike.
type Machines struct {
	Name      string
	Count     int
	Resources roost.Resources // GPUMemory: of each GPU
	Owner     *owner.Policy   // when they are lent; nil: always
	Visits    Visits          // of the owner of each
}

// Load is how jobs of a kind come.
type Load struct {
	Job    Job
	Jobs   int           // so many submissions at most
	Every  time.Duration // between two, on the mean; 0: all at once
	From   time.Duration // the first comes no earlier, since the beginning
	Until  time.Duration // and none later; 0: no matter when
	Run    time.Duration // for which a task runs, the median
	Spread float64       // standard deviation of the logarithm of that; 0: all run alike
	Users  int           // by whom they are submitted, in turn
}

// Bounds of a simulated pool.
const (
	maxManagers = 5
	maxSchedds  = 1000
	maxMachines = 1_000_000
	maxLoad     = 10_000_000 // submissions
	maxUsers    = 100_000
)

// ParseMix reads a file that describes a pool and the jobs that come to it. When the diagnostics hold an error it means nothing.
func ParseMix(src []byte, opts Options) (*Mix, hcl.Diagnostics) {
	m := &mixer{mix: Mix{Managers: 1, Schedds: 1}}
	jobs, diags := parseFile(src, opts, m)
	if diags.HasErrors() {
		return nil, diags
	}
	return m.finish(src, opts.Filename, jobs)
}

// mixer collects the blocks that a job file has not.
type mixer struct {
	mix    Mix
	loads  map[string]*hclsyntax.Block
	drafts map[string]Load
}

// mixBlocks are the kinds of blocks that a mix has more than a job file.
var mixBlocks = []string{"pool", "machines", "load"}

// read reads the blocks of a mix, when the variables and locals are known.
func (m *mixer) read(p *parser, blocks []*hclsyntax.Block) {
	m.loads, m.drafts = map[string]*hclsyntax.Block{}, map[string]Load{}
	pools := 0
	names := map[string]bool{}
	for _, b := range blocks {
		switch b.Type {
		case "pool":
			if pools++; pools > 1 {
				p.report(problem(b.TypeRange.Ptr(), "there are two blocks called pool", "Write all that is to be said of the pool into one."))
				continue
			}
			m.pool(p, b)
		case "machines":
			name, ok := p.label(b, "a kind of machines", `machines "node" {`)
			if ok && names[name] {
				p.report(problem(b.LabelRanges[0].Ptr(), fmt.Sprintf("there are two kinds of machines called %q", name), "Give one of them another name."))
			}
			if names[name] = true; ok {
				m.kind(p, b, name)
			}
		case "load":
			name, ok := p.label(b, "a load", `load "short" {`)
			if ok && m.loads[name] != nil {
				p.report(problem(b.LabelRanges[0].Ptr(), fmt.Sprintf("there are two loads of the job %q", name), "Write one block load for each job."))
			} else if ok {
				m.loads[name] = b
				m.load(p, b, name)
			}
		}
	}
	if len(m.mix.Machines) == 0 && !p.diags.HasErrors() {
		p.report(problem(rangeAt(p.src, p.opts.Filename, 0, 0), "the pool has no machines", "Say which there are:\n\n  machines \"node\" {\n    count = 10\n    cpus = 8\n    memory = \"32GiB\"\n  }\n"))
	}
}

func (m *mixer) pool(p *parser, b *hclsyntax.Block) {
	if p.noLabels(b, "pool { … }") && p.onlySettings(b, "a pool", []string{"managers", "schedds"}, nil) {
		p.whole(b, "managers", 1, maxManagers, &m.mix.Managers)
		p.whole(b, "schedds", 1, maxSchedds, &m.mix.Schedds)
	}
}

func (m *mixer) kind(p *parser, b *hclsyntax.Block, name string) {
	names := append([]string{"count", "cpus", "memory", "disk", "gpus", "gpu_memory"}, policySettings...)
	if !p.onlySettings(b, "a kind of machines", names, []string{"owner"}) {
		return
	}
	k := Machines{Name: name, Count: 1, Resources: roost.Resources{CPU: 1000, Memory: roost.GiB, Disk: 100 * roost.GiB}}
	p.whole(b, "count", 1, maxMachines, &k.Count)
	p.quantity(b, "cpus", readCores, func(text string) {
		cores, _ := strconv.ParseFloat(text, 64)
		k.Resources.CPU = roost.MilliCPU(cores*1000 + 0.5)
	})
	size := func(to *roost.Bytes) func(string) {
		return func(text string) {
			n, _ := strconv.ParseInt(text, 10, 64)
			*to = roost.Bytes(n)
		}
	}
	p.quantity(b, "memory", readSize("memory"), size(&k.Resources.Memory))
	p.quantity(b, "disk", readSize("disk"), size(&k.Resources.Disk))
	p.quantity(b, "gpu_memory", readSize("gpu_memory"), size(&k.Resources.GPUMemory))
	p.whole(b, "gpus", 0, 1024, &k.Resources.GPUs)
	m.lend(p, b, &k)
	total := k.Count
	for _, other := range m.mix.Machines {
		total += other.Count
	}
	if total > maxMachines {
		p.report(problem(b.TypeRange.Ptr(), fmt.Sprintf("the pool has %d machines", total), fmt.Sprintf("At most %d can be simulated.", maxMachines)))
	}
	m.mix.Machines = append(m.mix.Machines, k)
}

func (m *mixer) load(p *parser, b *hclsyntax.Block, name string) {
	if !p.onlySettings(b, "a load", []string{"jobs", "every", "from", "until", "run", "spread", "users"}, nil) {
		return
	}
	l := Load{Jobs: 1, Run: time.Minute, Users: 1}
	p.whole(b, "jobs", 1, maxLoad, &l.Jobs)
	p.whole(b, "users", 1, maxUsers, &l.Users)
	p.span(b, "every", &l.Every)
	p.span(b, "from", &l.From)
	p.span(b, "until", &l.Until)
	p.span(b, "run", &l.Run)
	p.quantity(b, "spread", readSpread, func(text string) { l.Spread, _ = strconv.ParseFloat(text, 64) })
	if a := b.Body.Attributes["until"]; a != nil && l.Until < l.From {
		p.report(problem(a.NameRange.Ptr(), "it ends before it begins", "until is an instant since the beginning, as from is."))
	}
	m.drafts[name] = l
}

// readSpread reads the standard deviation of a logarithm.
func readSpread(v cty.Value) (string, error) {
	const cure = "Write a number from 0, where all run alike, to 5: the standard deviation of the logarithm. Real jobs have 1 to 2."
	if v.IsNull() || v.Type() != cty.Number {
		return "", &wrong{"spread is not a number", fmt.Sprintf("It is %s. %s", describe(v), cure)}
	}
	f, _ := v.AsBigFloat().Float64()
	if f < 0 || f > 5 {
		return "", &wrong{"spread is no spread", fmt.Sprintf("It is %s. %s", describe(v), cure)}
	}
	return strconv.FormatFloat(f, 'g', -1, 64), nil
}

// finish puts jobs and loads together.
func (m *mixer) finish(src []byte, file string, jobs []Job) (*Mix, hcl.Diagnostics) {
	p := newParser(src, Options{Filename: file})
	known := map[string]bool{}
	for _, j := range jobs {
		known[j.Label] = true
		l, ok := m.drafts[j.Label]
		if !ok {
			p.report(problem(rangeAt(src, file, 0, 0), fmt.Sprintf("nobody submits the job %q", j.Label), fmt.Sprintf("Say how it comes:\n\n  load %q {\n    jobs = 100\n    every = \"10s\"\n    run = \"5m\"\n  }\n", j.Label)))
			continue
		}
		l.Job = j
		m.mix.Loads = append(m.mix.Loads, l)
	}
	for _, name := range sortedKeys(m.loads) {
		if b := m.loads[name]; !known[name] {
			p.report(problem(b.LabelRanges[0].Ptr(), fmt.Sprintf("there is no job %q", name), "A load says how the job of that name comes."+offer(name, sortedKeys(known))))
		}
	}
	return &m.mix, p.settle()
}

// setting evaluates a setting of a block; ok is false where it is not there, or has no value.
func (p *parser) setting(b *hclsyntax.Block, name string) (a *hclsyntax.Attribute, v cty.Value, ok bool) {
	if a = b.Body.Attributes[name]; a == nil {
		return nil, v, false
	}
	v, ok = p.constant(a.Expr)
	return a, v, ok
}

// quantity reads a setting that is a quantity.
func (p *parser) quantity(b *hclsyntax.Block, name string, read func(cty.Value) (string, error), set func(string)) {
	a, v, ok := p.setting(b, name)
	if !ok {
		return
	}
	text, err := read(v)
	var w *wrong
	if errors.As(err, &w) {
		p.report(problem(a.Expr.Range().Ptr(), w.summary, w.detail))
		return
	}
	set(text)
}

// whole reads a setting that is a whole number.
func (p *parser) whole(b *hclsyntax.Block, name string, low, high int, to *int) {
	p.quantity(b, name, func(v cty.Value) (string, error) {
		cure := fmt.Sprintf("Write a whole number from %d to %d.", low, high)
		if v.IsNull() || v.Type() != cty.Number {
			return "", &wrong{name + " has to be a number", fmt.Sprintf("It is %s. %s", describe(v), cure)}
		}
		n, _ := v.AsBigFloat().Int64()
		if !v.AsBigFloat().IsInt() || n < int64(low) || n > int64(high) {
			return "", &wrong{name + " is out of range", fmt.Sprintf("It is %s. %s", describe(v), cure)}
		}
		return strconv.FormatInt(n, 10), nil
	}, func(text string) { *to, _ = strconv.Atoi(text) })
}

// span reads a setting that is a time.
func (p *parser) span(b *hclsyntax.Block, name string, to *time.Duration) {
	p.quantity(b, name, func(v cty.Value) (string, error) {
		cure := fmt.Sprintf("Write a number and a unit: %s = \"90s\", \"5m\", \"2h\" or \"1d\".", name)
		if v.IsNull() || v.Type() != cty.String {
			return "", &wrong{name + " is not a time", fmt.Sprintf("It is %s. %s", describe(v), cure)}
		}
		d, err := roost.ParseDuration(v.AsString())
		if err != nil || d < 0 {
			return "", &wrong{name + " is not a time", fmt.Sprintf("It is %s. %s", describe(v), cure)}
		}
		*to = d
		return "", nil
	}, func(string) {})
}
