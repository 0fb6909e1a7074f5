package submit

import (
	"fmt"
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
)

// Command returns the job that runs argv. It is read like a job block with constant
// settings, so the rules and messages are the same. Its errors wrap roost.Invalid or
// roost.NoInput.
func Command(argv []string, flags JobFlags, opts ParseOptions) (Job, error) {
	if len(argv) == 0 {
		return Job{}, fmt.Errorf("there is no command to run: write it behind --: %w", roost.Usage)
	}
	request := jobFlags(flags)
	opts.Defaults = opts.Defaults.WithDefaults()
	p := newParser(nil, opts)
	p.root.Functions = p.functions()
	p.meter.functions = p.root.Functions
	body := &hclsyntax.Body{Attributes: request.attributes(argv)}
	b := newBuilder(p, &hclsyntax.Block{Type: "job", Body: body}, request.jobName(argv))
	if !jobName.matches(b.name) {
		return Job{}, fmt.Errorf("name %q: a name is made of letters, digits and _ . + -, and begins with a letter "+
			"or a digit: %w", b.name, roost.Invalid)
	}
	for _, entry := range request.Environment {
		if _, _, ok := strings.Cut(entry, "="); !ok {
			return Job{}, fmt.Errorf("environment %q: write it as NAME=value: %w", entry, roost.Invalid)
		}
	}
	b.buildJob()
	if len(p.diags) > 0 {
		d := p.diags[0]
		return Job{}, fmt.Errorf("%s. %s: %w", d.Summary, strings.TrimSuffix(d.Detail, "."),
			ExitKind(hcl.Diagnostics{d}))
	}
	b.setDependsOn()
	return Job{Name: b.name, Label: b.name, Ad: b.ad, Count: b.tasks.count, Columns: b.columns, Array: b.tasks.array},
		nil
}

// jobFlags are JobFlags that become the settings of a job block.
type jobFlags JobFlags

// jobName returns the job's name: the one that is set, or one made of the program's.
func (r jobFlags) jobName(argv []string) string {
	if r.Name != "" {
		return r.Name
	}
	name := strings.Map(func(c rune) rune {
		if c == '_' || c == '.' || c == '+' || c == '-' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' ||
			c >= 'a' && c <= 'z' {
			return c
		}
		return '_'
	}, path.Base(argv[0]))
	if name = strings.TrimLeft(name, "_.+-"); name == "" {
		name = "job"
	}
	return name[:min(len(name), 230)]
}

// attributes returns the settings of an equivalent job block.
func (r jobFlags) attributes(argv []string) hclsyntax.Attributes {
	set := map[string]cty.Value{"command": textValues(argv)}
	for name, s := range map[string]string{
		"directory": r.Directory, "cpus": r.CPUs, "memory": r.Memory, "disk": r.Disk, "walltime": r.Walltime,
		"band": r.Band, "group": r.Group,
		"requirements": r.Requirements, "rank": r.Rank, "stdin": r.Stdin, "stdout": r.Stdout, "stderr": r.Stderr,
		"transfer": r.Transfer,
		"notice":   r.Notice, "lease": r.Lease, "start_after": r.StartAfter,
		"gpu_memory": r.GPUMemory, "app_class": r.AppClass,
	} {
		if s != "" {
			set[name] = cty.StringVal(s)
		}
	}
	for name, n := range map[string]int{"gpus": r.GPUs, "priority": r.Priority, "count": r.Count, "retries": r.Retries,
		"max_running": r.MaxRunning} {
		if n != 0 {
			set[name] = cty.NumberIntVal(int64(n))
		}
	}
	for name, on := range map[string]bool{"join_output": r.JoinOutput, "getenv": r.GetEnv, "hold": r.Hold} {
		if on {
			set[name] = cty.True
		}
	}
	for name, list := range map[string][]string{"inputs": r.Inputs, "outputs": r.Outputs, "depends_on": r.DependsOn} {
		if len(list) > 0 {
			set[name] = textValues(list)
		}
	}
	environment := map[string]string{}
	for _, entry := range r.Environment {
		name, value, _ := strings.Cut(entry, "=")
		environment[name] = value
	}
	for name, m := range map[string]map[string]string{"environment": environment, "labels": r.Labels} {
		if len(m) > 0 {
			set[name] = textMapValue(m)
		}
	}
	attrs := make(hclsyntax.Attributes, len(set))
	for name, v := range set {
		attrs[name] = &hclsyntax.Attribute{Name: name, Expr: &hclsyntax.LiteralValueExpr{Val: v}}
	}
	return attrs
}

func textValues(list []string) cty.Value {
	values := make([]cty.Value, len(list))
	for i, s := range list {
		values[i] = cty.StringVal(s)
	}
	return cty.TupleVal(values)
}

func textMapValue(m map[string]string) cty.Value {
	values := make(map[string]cty.Value, len(m))
	for name, s := range m {
		values[name] = cty.StringVal(s)
	}
	return cty.ObjectVal(values)
}
