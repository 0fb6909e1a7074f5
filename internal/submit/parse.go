package submit

import (
	"fmt"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost/internal/suggest"
)

// ParseFile reads a job file. If the diagnostics contain an error there are no jobs: a
// file is submitted as a whole or not at all. Each job depends only on earlier ones;
// DependsOn names those as "@0", "@1", ….
func ParseFile(src []byte, opts ParseOptions) ([]Job, hcl.Diagnostics) {
	return parseFile(src, opts, nil)
}

// parseFile is ParseFile for a file that may also have the blocks of a simulated pool.
func parseFile(src []byte, opts ParseOptions, mix *simPoolParser) ([]Job, hcl.Diagnostics) {
	opts.Defaults = opts.Defaults.WithDefaults()
	if diags := checkSource(src, opts.Filename); diags != nil {
		return nil, diags
	}
	file, diags := hclsyntax.ParseConfig(src, opts.Filename, hcl.InitialPos)
	p := newParser(src, opts)
	p.simPool = mix
	if diags.HasErrors() { // one syntax error causes others after it
		sortByPlace(diags)
		for _, d := range diags {
			if d.Severity == hcl.DiagError {
				p.diags = hclDiags{d}
				break
			}
		}
		return nil, p.finishDiagnostics()
	}
	p.root.Functions = p.functions()
	p.meter.functions = p.root.Functions
	jobs := p.readBlocks(file.Body.(*hclsyntax.Body))
	if p.diags.HasErrors() {
		return nil, p.finishDiagnostics()
	}
	return jobs, p.finishDiagnostics()
}

// fileParser is the state of reading one file.
type fileParser struct {
	options       ParseOptions
	source        []byte
	root          *hcl.EvalContext // var, local and the functions
	meter         *stepCounter
	declared      map[string]cty.Value // the variables
	localNames    []string
	jobNames      []string
	nodeNames     []string               // of a flow
	blocks        []*hclsyntax.Block     // of jobs
	allocBlocks   []*hclsyntax.Block     // of alloc sets
	allocs        map[string]*jobBuilder // alloc sets by name
	builtJobs     map[string]*jobBuilder // the jobs by name, once their order is fixed
	freeRefs      map[hclsyntax.Expression][]hcl.Traversal
	checkedExprs  map[hclsyntax.Expression]bool
	reportedOnce  map[string]bool
	hasUnreadFile bool                    // a function could not read a file
	simPool       *simPoolParser          // nil: a job file
	jobVariables  map[string]*jobVariable // variables that differ between jobs, see ParseOptions
	diags         hcl.Diagnostics
}

func newParser(src []byte, opts ParseOptions) *fileParser {
	return &fileParser{
		options: opts, source: src, meter: newMeter(), root: &hcl.EvalContext{Variables: map[string]cty.Value{}},
		freeRefs: map[hclsyntax.Expression][]hcl.Traversal{}, checkedExprs: map[hclsyntax.Expression]bool{},
		reportedOnce: map[string]bool{},
	}
}

func (p *fileParser) report(d *hcl.Diagnostic) { p.diags = append(p.diags, d) }

// reportOnce reports a problem that would otherwise be repeated for every later
// expression.
func (p *fileParser) reportOnce(key string, d *hcl.Diagnostic) {
	if !p.reportedOnce[key] {
		p.reportedOnce[key] = true
		p.report(d)
	}
}

// sourceText returns the text of a range.
func (p *fileParser) sourceText(r hcl.Range) string { return string(p.source[r.Start.Byte:r.End.Byte]) }

// readBlocks reads the blocks: variables, then locals, then jobs.
func (p *fileParser) readBlocks(body *hclsyntax.Body) []Job {
	for _, name := range sortedKeys(body.Attributes) {
		a := body.Attributes[name]
		p.report(newDiagnostic(a.NameRange.Ptr(), fmt.Sprintf("%q is outside of every job", name),
			"Settings belong into a block: job \"name\" { … }, or locals { … } for values that several jobs use."))
	}
	var variables, locals, mixed []*hclsyntax.Block
	known := []string{"job", "alloc", "variable", "locals"}
	if p.simPool != nil {
		known = append(known, simPoolBlocks...)
	}
	for _, b := range body.Blocks {
		switch b.Type {
		case "variable":
			variables = append(variables, b)
		case "locals":
			locals = append(locals, b)
		case "job":
			p.blocks = append(p.blocks, b)
		case "alloc":
			p.allocBlocks = append(p.allocBlocks, b)
		default:
			if p.simPool != nil && containsName(simPoolBlocks, b.Type) {
				mixed = append(mixed, b)
				continue
			}
			p.report(newDiagnostic(b.TypeRange.Ptr(), fmt.Sprintf("there is no block %q", b.Type),
				"A job file has blocks called job, alloc, variable and locals."+nearestHint(b.Type, known)))
		}
	}
	p.readVariables(variables)
	p.evalLocals(locals)
	if p.simPool != nil {
		p.simPool.readBlocks(p, mixed)
	}
	if len(p.blocks)+len(p.allocBlocks) == 0 && !p.diags.HasErrors() {
		p.report(newDiagnostic(rangeAt(p.source, p.options.Filename, 0, 0), "there is no job in this file", emptyHint))
	}
	if all := slices.Concat(p.blocks, p.allocBlocks); len(all) > maxJobs {
		p.report(newDiagnostic(all[maxJobs].TypeRange.Ptr(), "there are too many jobs in this file",
			fmt.Sprintf("A file has at most %d. Jobs that differ in values only are one job with for_each.", maxJobs)))
		return nil
	}
	return p.readJobs()
}

// nearestHint is didYouMean without the list of all names.
func nearestHint(name string, names []string) string {
	if best := nearestName(name, names); best != "" {
		return " Did you mean \"" + best + "\"?"
	}
	return ""
}

// readJobs reads the job blocks, and sorts them so that each comes after those that it
// depends on.
func (p *fileParser) readJobs() []Job {
	allocs := p.readAllocs()
	builders := make([]*jobBuilder, 0, len(p.blocks))
	lines := map[string]int{}
	for _, block := range p.blocks {
		name, ok := p.blockLabel(block, "a job", "job \"train\" {")
		if !ok {
			continue
		}
		if line, twice := lines[name]; twice {
			p.report(newDiagnostic(block.LabelRanges[0].Ptr(), fmt.Sprintf("there are two jobs called %q", name),
				fmt.Sprintf("The other one is on line %d. Give one of them another name, or make them one job with "+
					"for_each.", line)))
			continue
		}
		lines[name] = block.DefRange().Start.Line
		p.jobNames = append(p.jobNames, name)
		builders = append(builders, newBuilder(p, block, name))
	}
	for _, b := range builders {
		b.buildJob()
	}
	order := append(allocs, p.sortJobs(builders)...)
	if p.diags.HasErrors() {
		return nil
	}
	jobs := make([]Job, len(order))
	p.builtJobs = map[string]*jobBuilder{}
	for place, b := range order {
		b.position = place
		if b != p.allocs[b.name] {
			p.builtJobs[b.name] = b
		}
	}
	for place, b := range order {
		b.setDependsOn()
		allocReader{b}.setInsideID()
		jobs[place] = Job{Name: b.name, Label: b.name, Ad: b.ad, Count: b.tasks.count, Columns: b.columns,
			Array: b.tasks.array}
	}
	return jobs
}

// blockLabel returns the only label of a block, which must be a valid name.
func (p *fileParser) blockLabel(b *hclsyntax.Block, noun, example string) (string, bool) {
	switch {
	case len(b.Labels) == 0:
		p.report(newDiagnostic(b.TypeRange.Ptr(), noun+" has to have a name",
			"Write it in quotes behind the word:\n\n  "+example+"\n"))
		return "", false
	case len(b.Labels) > 1:
		p.report(newDiagnostic(b.LabelRanges[1].Ptr(), noun+" has one name, and here are several",
			"Write one name in quotes, without blanks:\n\n  "+example+"\n"))
		return "", false
	case !jobName.matches(b.Labels[0]):
		p.report(newDiagnostic(b.LabelRanges[0].Ptr(), fmt.Sprintf("%q cannot be a name", truncateText(b.Labels[0])),
			"A name is made of letters, digits and _ . + -, begins with a letter or a digit, and has at most "+
				"230 characters."))
		return "", false
	}
	return b.Labels[0], true
}

func (p *fileParser) refuseLabels(b *hclsyntax.Block, example string) bool {
	if len(b.Labels) > 0 {
		p.report(newDiagnostic(b.LabelRanges[0].Ptr(), fmt.Sprintf("%s has no name", b.Type),
			"Write it as "+example+"."))
		return false
	}
	return true
}

// refuseUnknown reports unknown settings and blocks in a block. names are the known
// settings; nil allows all.
func (p *fileParser) refuseUnknown(b *hclsyntax.Block, noun string, names, blocks []string) bool {
	ok := true
	for _, name := range sortedKeys(b.Body.Attributes) {
		if names == nil || containsName(names, name) {
			continue
		}
		ok = false
		a := b.Body.Attributes[name]
		if containsName(blocks, name) {
			p.report(newDiagnostic(a.NameRange.Ptr(), fmt.Sprintf("%q is a block, not a setting", name),
				fmt.Sprintf("Write it without the =: %s { … }.", name)))
			continue
		}
		p.report(newDiagnostic(a.NameRange.Ptr(), fmt.Sprintf("there is no setting %q", name),
			unknownHint(name, noun, names)))
	}
	for _, inner := range b.Body.Blocks {
		if containsName(blocks, inner.Type) {
			continue
		}
		ok = false
		if containsName(names, inner.Type) {
			p.report(newDiagnostic(inner.TypeRange.Ptr(), fmt.Sprintf("%q is a setting, not a block", inner.Type),
				fmt.Sprintf("Write it with a =: %s = {…} for a map.", inner.Type)))
			continue
		}
		if containsName(jobBlocks, inner.Type) && containsName(jobBlocks, b.Type) {
			p.report(newDiagnostic(inner.TypeRange.Ptr(), fmt.Sprintf("there is no block %q in %s", inner.Type, noun),
				fmt.Sprintf("It belongs into the job itself. Move it out of the %s block, and write it beside it.",
					b.Type)))
			continue
		}
		p.report(newDiagnostic(inner.TypeRange.Ptr(), fmt.Sprintf("there is no block %q in %s", inner.Type, noun),
			"It has no meaning here."+nearestHint(inner.Type, append(append([]string(nil), blocks...), names...))))
	}
	return ok
}

// foreignSettings maps the names of settings in other systems to Roost's.
var foreignSettings = map[string]string{
	"args": "arguments", "env": "environment", "cmd": "command", "cpu": "cpus", "ncpus": "cpus", "cores": "cpus",
	"mem": "memory", "ram": "memory", "gpu": "gpus",
	"ngpus": "gpus", "gpu_mem": "gpu_memory", "gmem": "gpu_memory", "vram": "gpu_memory",
	"request_gpu_memory": "gpu_memory", "class": "app_class", "time": "walltime", "timeout": "walltime",
	"time_limit": "walltime", "cwd": "directory", "dir": "directory", "retries": "retry",
	"workdir": "directory", "initialdir": "directory", "iwd": "directory",
	"output": "stdout", "error": "stderr", "input": "stdin", "queue": "band", "account": "group", "project": "group",
	"tasks": "count", "array": "count", "replicas": "count",
	"after": "depends_on", "dependencies": "depends_on", "depends_on": "after", "parents": "after",
	"constraint": "requirements", "universe": "command",
	"request_cpus": "cpus", "request_memory": "memory",
	"request_disk": "disk", "request_gpus": "gpus", "log": "user_log", "inherit_environment": "getenv",
	"max_retries": "retries", "prio": "priority", "name": "",
	"mail": "mail_to", "email": "mail_to", "notification": "mail_on", "notify_user": "mail_to", "mail_type": "mail_on",
	"mail_user": "mail_to", "cput": "cpu_time", "vmem": "virtual_memory",
	"pcput": "process_cpu_time", "pmem": "process_memory", "pvmem": "process_virtual_memory", "fsize": "file_size",
	"transfer_input_files": "inputs", "transfer_output_files": "outputs", "should_transfer_files": "transfer",
}

func unknownHint(name, noun string, names []string) string {
	if near := nearestName(name, names); near != "" && suggest.Distance(normalizeName(name), normalizeName(near)) <= 2 {
		return fmt.Sprintf("It means nothing in %s. Did you mean %q?", noun, near)
	}
	switch other, known := foreignSettings[name]; {
	case name == "name" && containsName(names, "executable"):
		return "The name of a job comes after the word job: job \"name\" { … }."
	case known && containsName(names, other):
		return fmt.Sprintf("It is called %q here.", other)
	}
	return fmt.Sprintf("It means nothing in %s.", noun) + didYouMean(name, names)
}

// jobAtOffset returns the name of the job block around an offset.
func (p *fileParser) jobAtOffset(offset int) string {
	for _, b := range slices.Concat(p.blocks, p.allocBlocks) {
		if b.Range().Start.Byte <= offset && offset <= b.CloseBraceRange.End.Byte && len(b.Labels) > 0 {
			return b.Labels[0]
		}
	}
	return ""
}
