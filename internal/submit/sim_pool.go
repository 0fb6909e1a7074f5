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
	"github.com/roost-batch/roost/startd/desktop/policy"
)

// SimPool is a pool to be simulated, and the jobs that come to it. Its file is a job file
// with three more kinds of blocks.
//
//	pool { managers = 3 }
//	machines "node" { count = 100, cpus = 16, memory = "64GiB" }
//	machines "desk" { policy = "desktop", owner { hours = ["Mon-Fri 08:00-18:00"] } }
//	job "short" { … }
//	load "short" { every = "10s", jobs = 1000, run = "5m", spread = 1.5 }
type SimPool struct {
	Managers, Schedds int
	Machines          []SimMachines
	Loads             []SimLoad
}

// SimMachines is a number of identical machines.
type SimMachines struct {
	Name      string
	Count     int
	Resources roost.Resources // GPUMemory: of each GPU
	Owner     *policy.Policy  // when they are lent; nil: always
	Schedule  OwnerSchedule   // of the owner of each
}

// SimLoad describes how jobs of a kind arrive.
type SimLoad struct {
	Job          Job
	Jobs         int           // maximum of submissions
	Interval     time.Duration // mean time between two submissions; 0: all at once
	Start        time.Duration // earliest submission, since the start of the simulation
	End          time.Duration // latest submission; 0: unlimited
	RunTime      time.Duration // median run time of a task
	RunTimeSigma float64       // standard deviation of the logarithm of the run time; 0: all equal
	Users        int           // number of users who submit in turn
}

// Bounds of a simulated pool.
const (
	maxManagers = 5
	maxSchedds  = 1000
	maxMachines = 1_000_000
	maxLoad     = 10_000_000 // submissions
	maxUsers    = 100_000
)

// ParseSimPool reads a file that describes a pool and the jobs that come to it. If the
// diagnostics contain an error the result is nil.
func ParseSimPool(src []byte, opts ParseOptions) (*SimPool, hcl.Diagnostics) {
	m := &simPoolParser{simPool: SimPool{Managers: 1, Schedds: 1}}
	jobs, diags := parseFile(src, opts, m)
	if diags.HasErrors() {
		return nil, diags
	}
	return m.linkLoads(src, opts.Filename, jobs)
}

// simPoolParser collects the blocks that a job file does not have.
type simPoolParser struct {
	simPool      SimPool
	loads        map[string]*hclsyntax.Block
	pendingLoads map[string]SimLoad
}

// simPoolBlocks are the kinds of blocks that a job file does not have.
var simPoolBlocks = []string{"pool", "machines", "load"}

// readBlocks reads the blocks of a simulated pool, once variables and locals are known.
func (m *simPoolParser) readBlocks(p *fileParser, blocks []*hclsyntax.Block) {
	m.loads, m.pendingLoads = map[string]*hclsyntax.Block{}, map[string]SimLoad{}
	pools := 0
	names := map[string]bool{}
	for _, b := range blocks {
		switch b.Type {
		case "pool":
			if pools++; pools > 1 {
				p.report(newDiagnostic(b.TypeRange.Ptr(), "there are two blocks called pool",
					"Write all that is to be said of the pool into one."))
				continue
			}
			m.readPool(p, b)
		case "machines":
			name, ok := p.blockLabel(b, "a kind of machines", `machines "node" {`)
			if ok && names[name] {
				p.report(newDiagnostic(b.LabelRanges[0].Ptr(),
					fmt.Sprintf("there are two kinds of machines called %q", name), "Give one of them another name."))
			}
			if names[name] = true; ok {
				m.readMachines(p, b, name)
			}
		case "load":
			name, ok := p.blockLabel(b, "a load", `load "short" {`)
			if ok && m.loads[name] != nil {
				p.report(newDiagnostic(b.LabelRanges[0].Ptr(), fmt.Sprintf("there are two loads of the job %q", name),
					"Write one block load for each job."))
			} else if ok {
				m.loads[name] = b
				m.readLoad(p, b, name)
			}
		}
	}
	if len(m.simPool.Machines) == 0 && !p.diags.HasErrors() {
		p.report(newDiagnostic(rangeAt(p.source, p.options.Filename, 0, 0), "the pool has no machines",
			"Say which there are:\n\n  machines \"node\" {\n    count = 10\n    cpus = 8\n    memory = "+
				"\"32GiB\"\n  }\n"))
	}
}

func (m *simPoolParser) readPool(p *fileParser, b *hclsyntax.Block) {
	if p.refuseLabels(b, "pool { … }") && p.refuseUnknown(b, "a pool", []string{"managers", "schedds"}, nil) {
		p.readInteger(b, "managers", 1, maxManagers, &m.simPool.Managers)
		p.readInteger(b, "schedds", 1, maxSchedds, &m.simPool.Schedds)
	}
}

func (m *simPoolParser) readMachines(p *fileParser, b *hclsyntax.Block, name string) {
	names := append([]string{"count", "cpus", "memory", "disk", "gpus", "gpu_memory"}, policySettings...)
	if !p.refuseUnknown(b, "a kind of machines", names, []string{"owner"}) {
		return
	}
	k := SimMachines{Name: name, Count: 1,
		Resources: roost.Resources{CPU: 1000, Memory: roost.GiB, Disk: 100 * roost.GiB}}
	p.readInteger(b, "count", 1, maxMachines, &k.Count)
	p.readQuantity(b, "cpus", readCores, func(text string) {
		cores, _ := strconv.ParseFloat(text, 64)
		k.Resources.CPU = roost.MilliCPU(cores*1000 + 0.5)
	})
	size := func(to *roost.Bytes) func(string) {
		return func(text string) {
			n, _ := strconv.ParseInt(text, 10, 64)
			*to = roost.Bytes(n)
		}
	}
	p.readQuantity(b, "memory", readSize("memory"), size(&k.Resources.Memory))
	p.readQuantity(b, "disk", readSize("disk"), size(&k.Resources.Disk))
	p.readQuantity(b, "gpu_memory", readSize("gpu_memory"), size(&k.Resources.GPUMemory))
	p.readInteger(b, "gpus", 0, 1024, &k.Resources.GPUs)
	m.readAvailability(p, b, &k)
	total := k.Count
	for _, other := range m.simPool.Machines {
		total += other.Count
	}
	if total > maxMachines {
		p.report(newDiagnostic(b.TypeRange.Ptr(), fmt.Sprintf("the pool has %d machines", total),
			fmt.Sprintf("At most %d can be simulated.", maxMachines)))
	}
	m.simPool.Machines = append(m.simPool.Machines, k)
}

func (m *simPoolParser) readLoad(p *fileParser, b *hclsyntax.Block, name string) {
	if !p.refuseUnknown(b, "a load", []string{"jobs", "every", "from", "until", "run", "spread", "users"}, nil) {
		return
	}
	l := SimLoad{Jobs: 1, RunTime: time.Minute, Users: 1}
	p.readInteger(b, "jobs", 1, maxLoad, &l.Jobs)
	p.readInteger(b, "users", 1, maxUsers, &l.Users)
	p.readDuration(b, "every", &l.Interval)
	p.readDuration(b, "from", &l.Start)
	p.readDuration(b, "until", &l.End)
	p.readDuration(b, "run", &l.RunTime)
	p.readQuantity(b, "spread", readSpread, func(text string) { l.RunTimeSigma, _ = strconv.ParseFloat(text, 64) })
	if a := b.Body.Attributes["until"]; a != nil && l.End < l.Start {
		p.report(newDiagnostic(a.NameRange.Ptr(), "it ends before it begins",
			"until is an instant since the beginning, as from is."))
	}
	m.pendingLoads[name] = l
}

// readSpread reads the standard deviation of a logarithm.
func readSpread(v cty.Value) (string, error) {
	const hint = "Write a number from 0, where all run alike, to 5: the standard deviation of the logarithm. Real " +
		"jobs have 1 to 2."
	if v.IsNull() || v.Type() != cty.Number {
		return "", &valueError{"spread is not a number", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
	}
	f, _ := v.AsBigFloat().Float64()
	if f < 0 || f > 5 {
		return "", &valueError{"spread is no spread", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
	}
	return strconv.FormatFloat(f, 'g', -1, 64), nil
}

// linkLoads assigns jobs to loads.
func (m *simPoolParser) linkLoads(src []byte, file string, jobs []Job) (*SimPool, hcl.Diagnostics) {
	p := newParser(src, ParseOptions{Filename: file})
	known := map[string]bool{}
	for _, j := range jobs {
		known[j.Label] = true
		l, ok := m.pendingLoads[j.Label]
		if !ok {
			p.report(newDiagnostic(rangeAt(src, file, 0, 0), fmt.Sprintf("nobody submits the job %q", j.Label),
				fmt.Sprintf("Say how it comes:\n\n  load %q {\n    jobs = 100\n    every = \"10s\"\n    run "+
					"= \"5m\"\n  }\n", j.Label)))
			continue
		}
		l.Job = j
		m.simPool.Loads = append(m.simPool.Loads, l)
	}
	for _, name := range sortedKeys(m.loads) {
		if b := m.loads[name]; !known[name] {
			p.report(newDiagnostic(b.LabelRanges[0].Ptr(), fmt.Sprintf("there is no job %q", name),
				"A load says how the job of that name comes."+nearestHint(name, sortedKeys(known))))
		}
	}
	return &m.simPool, p.finishDiagnostics()
}

// evalSetting evaluates a setting of a block; ok is false if it is not set or has no
// value.
func (p *fileParser) evalSetting(b *hclsyntax.Block, name string) (a *hclsyntax.Attribute, v cty.Value, ok bool) {
	if a = b.Body.Attributes[name]; a == nil {
		return nil, v, false
	}
	v, ok = p.constantExpr(a.Expr)
	return a, v, ok
}

// readQuantity reads a setting that is a quantity.
func (p *fileParser) readQuantity(b *hclsyntax.Block, name string, read func(cty.Value) (string, error),
	set func(string)) {
	a, v, ok := p.evalSetting(b, name)
	if !ok {
		return
	}
	text, err := read(v)
	var w *valueError
	if errors.As(err, &w) {
		p.report(newDiagnostic(a.Expr.Range().Ptr(), w.summary, w.detail))
		return
	}
	set(text)
}

// readInteger reads a setting that is a whole number.
func (p *fileParser) readInteger(b *hclsyntax.Block, name string, low, high int, to *int) {
	p.readQuantity(b, name, func(v cty.Value) (string, error) {
		hint := fmt.Sprintf("Write a whole number from %d to %d.", low, high)
		if v.IsNull() || v.Type() != cty.Number {
			return "", &valueError{name + " has to be a number", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
		}
		n, _ := v.AsBigFloat().Int64()
		if !v.AsBigFloat().IsInt() || n < int64(low) || n > int64(high) {
			return "", &valueError{name + " is out of range", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
		}
		return strconv.FormatInt(n, 10), nil
	}, func(text string) { *to, _ = strconv.Atoi(text) })
}

// readDuration reads a setting that is a duration.
func (p *fileParser) readDuration(b *hclsyntax.Block, name string, to *time.Duration) {
	p.readQuantity(b, name, func(v cty.Value) (string, error) {
		hint := fmt.Sprintf("Write a number and a unit: %s = \"90s\", \"5m\", \"2h\" or \"1d\".", name)
		if v.IsNull() || v.Type() != cty.String {
			return "", &valueError{name + " is not a time", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
		}
		d, err := roost.ParseDuration(v.AsString())
		if err != nil || d < 0 {
			return "", &valueError{name + " is not a time", fmt.Sprintf("It is %s. %s", describeValue(v), hint)}
		}
		*to = d
		return "", nil
	}, func(string) {})
}
