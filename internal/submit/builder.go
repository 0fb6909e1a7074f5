package submit

import (
	"math/big"

	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
	"github.com/roost-batch/roost/classad"
)

// jobSettings are the names of a job's settings. A test fails if roost-job(5) lacks one.
var jobSettings = []string{
	"executable", "arguments", "command", "script", "shell", "environment", "getenv", "inputs", "outputs", "stdin",
	"stdout", "stderr", "user_log",
	"join_output", "directory", "transfer", "cpus", "memory", "disk", "gpus", "gpu_memory", "disk_io", "network",
	"cpu_slack", "memory_slack", "cores", "threads_per_core", "numa", "walltime", "app_class",
	"band", "priority", "group", "requirements", "rank", "limits", "spread", "packages", "prefer",
	"count", "for_each", "indexes", "retries", "success_exit_code", "lease", "notice", "start_after",
	"depends_on", "labels", "umask",
	"unix_group", "max_running", "gang", "led", "apart", "exclusive", "together", "processes", "mpi",
	"start_timeout", "reservation", "queue",
	"hold", "rerunnable", "cell_queue", "flock",
	"cpu_time", "process_cpu_time", "virtual_memory", "process_virtual_memory", "process_memory", "file_size", "nice",
	"run_count", "mail_on", "mail_to", "empty_output", "remove_output", "in", "place",
	"periodic_hold", "periodic_hold_reason", "periodic_release", "periodic_remove", "periodic_remove_reason",
	"periodic_vacate", "on_exit_hold", "on_exit_hold_reason", "on_exit_remove",
	"image", "image_workdir", "image_entrypoint", "image_writable", "mounts",
}

// jobBlocks are the blocks that may be in a job.
var jobBlocks = []string{"override", "checkpoint", "service", "port", "check", "schedule", "update", "logs",
	"autoscale", "vertical_autoscale", "secret", "package"}

// jobBuilder makes one job of a block.
type jobBuilder struct {
	parser           *fileParser
	block            *hclsyntax.Block
	body             *hclsyntax.Body
	name             string
	tasks            taskSet
	ad               *classad.Ad
	columns          []TaskColumn
	columnByExpr     map[string]string // source text of an expression -> its column
	workingDirectory taskText
	inputs           []inputFile
	dependencies     []jobDependency
	ports            []portBlock
	inside           insideReference
	leastTasks       int // that autoscale leaves; 0: as many as there are
	position         int // among the jobs of the file in their final order
}

func newBuilder(p *fileParser, block *hclsyntax.Block, name string) *jobBuilder {
	return &jobBuilder{parser: p, block: block, body: block.Body, name: name, ad: classad.New(),
		columnByExpr: map[string]string{}}
}

// reportProblem reports a mistake.
func (b *jobBuilder) reportProblem(at hcl.Range, summary, detail string) {
	b.parser.report(newDiagnostic(&at, summary, detail))
}

// buildJob reads the block into the ad. The order matters: columns need the tasks, and
// paths need the directory.
func (b *jobBuilder) buildJob() {
	b.parser.refuseUnknown(b.block, "a job", jobSettings, jobBlocks)
	b.taskReader().readTasks()
	b.ad.SetString(roost.AttrMyType, "Job")
	b.ad.SetString(roost.AttrJobName, EscapeLiteral(b.name))
	b.ad.SetInt(roost.AttrTaskCount, int64(b.tasks.perJob()))
	b.readPorts()
	b.readAutoscale()
	containerReader{b}.readContainer()
	containerReader{b}.readPackages()
	b.programReader().readDirectory()
	b.programReader().readProgram()
	b.programReader().readEnvironment()
	b.transferReader().readTransfer()
	b.transferReader().readStreams()
	b.resourceReader().readResources()
	b.resourceReader().readAppClass()
	b.resourceReader().readMachineOptions()
	b.resourceReader().readBounds()
	b.resourceReader().readPlacement()
	b.resourceReader().readLimits()
	b.readMail()
	conditionReader{b}.readConditions()
	b.readCheckpoint()
	b.readService()
	b.readChecks()
	b.readSchedule()
	b.readSecrets()
	b.readUpdate()
	b.readVerticalAutoscale()
	b.readLogs()
	b.readDependsOn()
	b.taskReader().readOverrides()
	allocReader{b}.readInside()
}

// attribute returns a setting of the block if it is set and the names in its expression
// are valid.
func (b *jobBuilder) attribute(name string, roots ...string) (*hclsyntax.Attribute, bool) {
	a := b.body.Attributes[name]
	return a, a != nil && b.parser.checkNames(a.Expr, roots)
}

// constantValue returns the value of a setting that is equal for all tasks; null counts
// as unset.
func (b *jobBuilder) constantValue(name string) (v cty.Value, at hcl.Range, ok bool) {
	a, ok := b.attribute(name)
	if !ok {
		return cty.DynamicVal, hcl.Range{}, false
	}
	v, ok = b.parser.evaluate(a.Expr, b.parser.root)
	return v, a.Expr.Range(), ok && !v.IsNull()
}

// constantText returns the value of a text setting.
func (b *jobBuilder) constantText(name, hint string) (s string, at hcl.Range, ok bool) {
	v, at, ok := b.constantValue(name)
	if ok && v.Type() != cty.String {
		b.reportProblem(at, name+" has to be a text", fmt.Sprintf("It is %s. %s", describeValue(v), hint))
		return "", at, false
	}
	if ok {
		s, ok = b.taskReader().valueText(v, at, name)
	}
	return s, at, ok
}

func (b *jobBuilder) constantBool(name string) (value, ok bool) {
	v, at, ok := b.constantValue(name)
	if ok && v.Type() != cty.Bool {
		b.reportProblem(at, name+" has to be true or false",
			fmt.Sprintf("It is %s. Write true or false, not in quotes.", describeValue(v)))
		return false, false
	}
	return ok && v.True(), ok
}

func (b *jobBuilder) constantInt(name string, least, most int64, hint string) (int64, bool) {
	v, at, ok := b.constantValue(name)
	if !ok {
		return 0, false
	}
	return b.checkInteger(v, at, name, least, most, hint)
}

// checkInteger checks that v is a whole number within bounds.
func (b *jobBuilder) checkInteger(v cty.Value, at hcl.Range, name string, least, most int64,
	hint string) (int64, bool) {
	if v.Type() != cty.Number {
		b.reportProblem(at, name+" has to be a number", fmt.Sprintf("It is %s. %s", describeValue(v), hint))
		return 0, false
	}
	f := v.AsBigFloat()
	if !f.IsInt() {
		b.reportProblem(at, name+" is not a whole number", fmt.Sprintf("It is %s. %s", numberText(v), hint))
		return 0, false
	}
	if f.Cmp(big.NewFloat(float64(least))) < 0 || f.Cmp(big.NewFloat(float64(most))) > 0 {
		b.reportProblem(at, name+" is out of range",
			fmt.Sprintf("It is %s, and can be from %d to %d. %s", truncateText(numberText(v)), least, most, hint))
		return 0, false
	}
	n, _ := f.Int64()
	return n, true
}

// checkNumber checks that v is a number.
func (b *jobBuilder) checkNumber(v cty.Value, expr hclsyntax.Expression, name, hint string) (*big.Float, bool) {
	if v.Type() != cty.Number {
		b.reportProblem(expr.Range(), name+" has to be a number", fmt.Sprintf("It is %s. %s", describeValue(v), hint))
		return nil, false
	}
	return v.AsBigFloat(), true
}
