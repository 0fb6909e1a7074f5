package submit

import (
	"math/big"

	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
	"github.com/zclconf/go-cty/cty"
)

// settings are the names of what can be set in a job, and where roost-job(5) is silent about one a test fails.
var settings = []string{
	"executable", "arguments", "command", "script", "shell", "environment", "getenv", "inputs", "outputs", "stdin", "stdout", "stderr",
	"join_output", "directory", "transfer", "cpus", "memory", "disk", "gpus", "gpu_memory", "walltime", "app_class", "band", "priority", "group", "requirements", "rank", "limits", "spread", "packages", "prefer",
	"count", "for_each", "indexes", "retries", "lease", "notice", "start_after", "depends_on", "labels", "umask", "unix_group", "max_running", "gang", "led", "apart", "exclusive", "together", "processes", "reservation", "queue", "hold", "rerunnable",
	"cpu_time", "process_cpu_time", "virtual_memory", "process_virtual_memory", "process_memory", "file_size", "nice", "run_count", "mail_on", "mail_to", "empty_output", "remove_output",
}

// builder makes one job of a block.
type builder struct {
	p        *parser
	block    *hclsyntax.Block
	body     *hclsyntax.Body
	name     string
	tasks    tasks
	ad       *classad.Ad
	columns  []Column
	columnOf map[string]string // source text of an expression -> its column
	iwd      text
	inputs   []input
	depends  []dependency
	place    int // among the jobs of the file, once they are in order
}

func newBuilder(p *parser, block *hclsyntax.Block, name string) *builder {
	return &builder{p: p, block: block, body: block.Body, name: name, ad: classad.New(), columnOf: map[string]string{}}
}

// fail reports a mistake.
func (b *builder) fail(at hcl.Range, summary, detail string) {
	b.p.report(problem(&at, summary, detail))
}

// build reads the block into the ad. The order matters: columns need the tasks, and paths the directory.
func (b *builder) build() {
	b.p.onlySettings(b.block, "a job", settings, []string{"override", "checkpoint"})
	b.readTasks()
	b.ad.SetString(roost.AttrMyType, "Job")
	b.ad.SetString(roost.AttrJobName, Literal(b.name))
	b.ad.SetInt(roost.AttrTaskCount, int64(b.tasks.count))
	b.readDirectory()
	b.readProgram()
	b.readEnvironment()
	b.readTransfer()
	b.readStreams()
	b.readResources()
	b.readAppClass()
	b.readBounds()
	b.readPlacement()
	b.readLimits()
	b.readMail()
	b.readCheckpoint()
	b.readDependsOn()
	b.readOverrides()
}

// attr returns an attribute that is set, with the names in it checked.
func (b *builder) attr(name string, roots ...string) (*hclsyntax.Attribute, bool) {
	a := b.body.Attributes[name]
	return a, a != nil && b.p.check(a.Expr, roots)
}

// same returns the value of a setting that is the same for all tasks; null counts as unset.
func (b *builder) same(name string) (v cty.Value, at hcl.Range, ok bool) {
	a, ok := b.attr(name)
	if !ok {
		return cty.DynamicVal, hcl.Range{}, false
	}
	v, ok = b.p.eval(a.Expr, b.p.root)
	return v, a.Expr.Range(), ok && !v.IsNull()
}

// sameText, sameBool and sameInt read settings of one type.
func (b *builder) sameText(name, cure string) (s string, at hcl.Range, ok bool) {
	v, at, ok := b.same(name)
	if ok && v.Type() != cty.String {
		b.fail(at, name+" has to be a text", fmt.Sprintf("It is %s. %s", describe(v), cure))
		return "", at, false
	}
	if ok {
		s, ok = b.textOf(v, at, name)
	}
	return s, at, ok
}

func (b *builder) sameBool(name string) (value, ok bool) {
	v, at, ok := b.same(name)
	if ok && v.Type() != cty.Bool {
		b.fail(at, name+" has to be true or false", fmt.Sprintf("It is %s. Write true or false, not in quotes.", describe(v)))
		return false, false
	}
	return ok && v.True(), ok
}

func (b *builder) sameInt(name string, least, most int64, cure string) (int64, bool) {
	v, at, ok := b.same(name)
	if !ok {
		return 0, false
	}
	return b.whole(v, at, name, least, most, cure)
}

// whole checks that v is a whole number within bounds.
func (b *builder) whole(v cty.Value, at hcl.Range, name string, least, most int64, cure string) (int64, bool) {
	if v.Type() != cty.Number {
		b.fail(at, name+" has to be a number", fmt.Sprintf("It is %s. %s", describe(v), cure))
		return 0, false
	}
	f := v.AsBigFloat()
	if !f.IsInt() {
		b.fail(at, name+" is not a whole number", fmt.Sprintf("It is %s. %s", numberText(v), cure))
		return 0, false
	}
	if f.Cmp(big.NewFloat(float64(least))) < 0 || f.Cmp(big.NewFloat(float64(most))) > 0 {
		b.fail(at, name+" is out of range", fmt.Sprintf("It is %s, and can be from %d to %d. %s", shorten(numberText(v)), least, most, cure))
		return 0, false
	}
	n, _ := f.Int64()
	return n, true
}

// number checks that v is a number.
func (b *builder) number(v cty.Value, expr hclsyntax.Expression, name, cure string) (*big.Float, bool) {
	if v.Type() != cty.Number {
		b.fail(expr.Range(), name+" has to be a number", fmt.Sprintf("It is %s. %s", describe(v), cure))
		return nil, false
	}
	return v.AsBigFloat(), true
}
