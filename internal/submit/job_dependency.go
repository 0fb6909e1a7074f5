package submit

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/roost-batch/roost/internal/lazyregexp"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost"
)

// jobDependency is one condition that a job waits for.
type jobDependency struct {
	dependencyType string // one of dependencyTypes, or on or synccount
	isAlternative  bool   // it is one of several
	delay          string // after its start, as "5m"
	id             string // id of a job elsewhere, or empty
	job            string // label of a job of this file, or empty
	sourceRange    hcl.Range
}

// The relations of dependencies (OpenPBS and Torque, qsub -W depend). dependencyTypes
// relate two jobs, and numberTypes wait for a number of later jobs.
var (
	dependencyTypes = []string{
		"afterok", "afternotok", "afterany", "after", "beforeok", "beforenotok", "beforeany", "before", "runone",
		"syncwith", "aftercorr", "afterready", "afterstartarray", "afterokarray",
		"afternotokarray", "afteranyarray",
	}
	numberTypes = []string{"on", "synccount"}
)

// maxDependencies bounds the number of later jobs that a job waits for, as in the schedd.
const maxDependencies = 1_000_000

// maxDelay bounds how long a job waits after the start of another, as in the schedd.
const maxDelay = 366 * 24 * time.Hour

const dependsOnHint = "Write a list of jobs: depends_on = [job.prepare, \"123\", { id = job.check, when " +
	"= \"afterany\" }]."

// readDependsOn reads depends_on. In it, job.NAME is an object that only this function
// understands.
func (b *jobBuilder) readDependsOn() {
	a, ok := b.attribute("depends_on", "job")
	if !ok {
		return
	}
	others := map[string]cty.Value{}
	for _, name := range b.parser.jobNames {
		others[name] = cty.ObjectVal(map[string]cty.Value{"job": cty.StringVal(name)})
	}
	scope := b.parser.root.NewChild()
	scope.Variables = map[string]cty.Value{"job": cty.ObjectVal(others)}
	exprs := []hclsyntax.Expression{a.Expr}
	if tuple, ok := a.Expr.(*hclsyntax.TupleConsExpr); ok {
		exprs = tuple.Exprs
	}
	for _, e := range exprs {
		v, ok := b.parser.evaluate(e, scope)
		if !ok || v.IsNull() {
			continue
		}
		b.addDependency(v, e.Range(), len(exprs) > 1 || exprs[0] != a.Expr)
	}
}

func (b *jobBuilder) addDependency(v cty.Value, at hcl.Range, element bool) {
	switch ty := v.Type(); {
	case !element && (ty.IsListType() || ty.IsTupleType() || ty.IsSetType()):
		for it := v.ElementIterator(); it.Next(); {
			_, x := it.Element()
			b.addDependency(x, at, true)
		}
	case ty == cty.String || ty == cty.Number:
		s, _ := b.taskReader().valueText(v, at, "depends_on")
		b.addID(s, at)
	case ty.IsObjectType() && ty.HasAttribute("job") && len(ty.AttributeTypes()) == 1:
		b.addJob("afterok", v.GetAttr("job").AsString(), at)
	case (ty.IsObjectType() || ty.IsMapType()) && element:
		b.addConditional(v.AsValueMap(), at)
	default:
		b.reportProblem(at, "this is not a job that can be waited for",
			fmt.Sprintf("It is %s. %s", describeValue(v), dependsOnHint))
	}
}

// addConditional reads { id = …, when = … }.
func (b *jobBuilder) addConditional(m map[string]cty.Value, at hcl.Range) {
	for _, name := range sortedKeys(m) {
		if name != "id" && name != "when" && name != "alternative" && name != "delay" {
			b.reportProblem(at, fmt.Sprintf("a dependency has no %q", name),
				"It has an id and a when, and perhaps alternative or delay. "+dependsOnHint)
			return
		}
	}
	id, ok := m["id"]
	if !ok || id.IsNull() {
		b.reportProblem(at, "a dependency without an id", dependsOnHint)
		return
	}
	when := "afterok"
	if w, ok := m["when"]; ok && !w.IsNull() {
		if w.Type() == cty.String {
			when = w.AsString()
		}
		if w.Type() != cty.String || !containsName(dependencyTypes, when) {
			b.reportProblem(at, "when is not a way to wait",
				fmt.Sprintf("It is %s, and can be afterok (all tasks succeeded), afternotok (one failed), afterany "+
					"(all have ended), after (it has started), afterready (a service is ready) or another one of "+
					"roost-job(5).%s", describeValue(w),
					nearestHint(when, dependencyTypes)))
			return
		}
	}
	before := len(b.dependencies)
	switch ty := id.Type(); {
	case ty == cty.String || ty == cty.Number:
		s, _ := b.taskReader().valueText(id, at, "id")
		b.addID(when+":"+s, at)
	case ty.IsObjectType() && ty.HasAttribute("job"):
		b.addJob(when, id.GetAttr("job").AsString(), at)
	default:
		b.reportProblem(at, "id is not a job", fmt.Sprintf("It is %s. %s", describeValue(id), dependsOnHint))
	}
	if len(b.dependencies) > before {
		addVariant(b, &b.dependencies[before], m, at)
	}
}

// addVariant reads what else a dependency may say: alternative = true, and a delay after
// the other's start.
func addVariant(b *jobBuilder, d *jobDependency, m map[string]cty.Value, at hcl.Range) {
	if v, ok := m["alternative"]; ok && !v.IsNull() {
		if v.Type() != cty.Bool {
			b.reportProblem(at, "alternative is not true or false", fmt.Sprintf("It is %s. With alternative = true "+
				"the job waits for one of those that have it, and not for all.", describeValue(v)))
			return
		}
		d.isAlternative = v.True()
	}
	v, ok := m["delay"]
	if !ok || v.IsNull() {
		return
	}
	text := ""
	if v.Type() == cty.String {
		text = v.AsString()
	}
	delay, err := time.ParseDuration(text)
	if err != nil || delay < 0 || delay > maxDelay || d.dependencyType != "after" {
		b.reportProblem(at, "this is not a time to wait after a start", fmt.Sprintf("delay is %s, and when is %q. "+
			"Write { id = job.NAME, when = \"after\", delay = \"5m\" }, with a year at most.", describeValue(v),
			d.dependencyType))
		return
	}
	d.delay = text
}

// addID adds a dependency in the form "123", "123.host" or "afterany:123".
func (b *jobBuilder) addID(s string, at hcl.Range) {
	dep, err := parseDependency(s)
	if err != nil {
		hint := "Jobs of this file are named without quotes: job.NAME."
		if containsName(b.parser.jobNames, s) {
			hint = fmt.Sprintf("The job of this file is named without quotes: job.%s.", s)
		}
		b.reportProblem(at, fmt.Sprintf("%q is not the id of a job", truncateText(s)),
			"An id is written as \"123\" or \"123.host\", with \"afterany:\" or the like before it. "+hint)
		return
	}
	dep.sourceRange = at
	b.dependencies = append(b.dependencies, dep)
}

// parseDependency parses "[type:]id" and "on:N". After the id of an array a number of
// tasks may follow for which the condition must hold: "afterokarray:12[][3]".
func parseDependency(s string) (jobDependency, error) {
	s, isAlternative := strings.CutPrefix(s, "?")
	dep := jobDependency{dependencyType: "afterok", id: s, isAlternative: isAlternative}
	if when, id, ok := strings.Cut(s, ":"); ok {
		if containsName(numberTypes, when) {
			if n, err := strconv.Atoi(id); err != nil || n < 1 || n > maxDependencies {
				return dep, fmt.Errorf("%q is no number of jobs", id)
			}
			return jobDependency{dependencyType: when, id: id}, nil
		}
		if !containsName(dependencyTypes, when) {
			return dep, fmt.Errorf("%q is not a way to wait", when)
		}
		dep.dependencyType, dep.id = when, id
	}
	if when := dep.dependencyType; isAlternative && (strings.HasPrefix(when, "before") ||
		containsName([]string{"runone", "syncwith", "aftercorr"}, when)) {
		return dep, fmt.Errorf("%q cannot be one of several alternatives", when)
	}
	if dep.dependencyType == "after" {
		dep.id, dep.delay, _ = strings.Cut(dep.id, "+")
	}
	plain := dep.id
	if strings.HasSuffix(dep.dependencyType, "array") {
		plain = taskDependency().ReplaceAllString(plain, "[]")
	}
	_, err := roost.ParseJobID(plain, "here")
	return dep, err
}

// taskDependency matches the number of tasks after the id of an array.
var taskDependency = lazyregexp.New(`\[\]\[[1-9][0-9]{0,7}\]`)

func (b *jobBuilder) addJob(when, name string, at hcl.Range) {
	if name == b.name {
		b.reportProblem(at, fmt.Sprintf("job %q waits for itself", name),
			"It would never start. Remove it from its own depends_on, or name another job.")
		return
	}
	if strings.HasPrefix(when, "before") || when == "runone" {
		b.reportProblem(at, fmt.Sprintf("%s is for jobs that are there already", when),
			fmt.Sprintf("job.%s is submitted with this file: let it wait for this one, as with depends_on = [job.%s].",
				name, b.name))
		return
	}
	b.dependencies = append(b.dependencies, jobDependency{dependencyType: when, job: name, sourceRange: at})
}

// sortJobs sorts jobs so that each comes after those that it depends on. Otherwise the
// order is that of the file.
func (p *fileParser) sortJobs(builders []*jobBuilder) []*jobBuilder {
	byName := map[string]*jobBuilder{}
	for _, b := range builders {
		byName[b.name] = b
	}
	state, order := map[string]int{}, make([]*jobBuilder, 0, len(builders)) // 1 on the path, 2 done
	var path []string
	var visit func(b *jobBuilder) bool
	visit = func(b *jobBuilder) bool {
		state[b.name] = 1
		path = append(path, b.name)
		for _, d := range b.dependencies {
			next := byName[d.job]
			if next == nil || state[next.name] == 2 {
				continue
			}
			if state[next.name] == 1 {
				p.report(newDiagnostic(d.sourceRange.Ptr(), "these jobs wait for each other in a ring",
					fmt.Sprintf("None of them could ever start: %s. Remove one of these dependencies.",
						cyclePath(path, next.name))))
				return false
			}
			if !visit(next) {
				return false
			}
		}
		path = path[:len(path)-1]
		state[b.name] = 2
		order = append(order, b)
		return true
	}
	for _, b := range builders {
		if state[b.name] == 0 && !visit(b) {
			return nil
		}
	}
	return order
}

// cyclePath formats the part of a path that leads from name back to name.
func cyclePath(path []string, name string) string {
	start := 0
	for i, n := range path {
		if n == name {
			start = i
		}
	}
	return strings.Join(append(append([]string(nil), path[start:]...), name), " waits for ")
}

// setDependsOn writes the dependencies into the ad, once the order of the jobs is fixed.
func (b *jobBuilder) setDependsOn() {
	list := make([]string, 0, len(b.dependencies))
	for _, d := range b.dependencies {
		id := d.id
		if d.job != "" {
			id = fmt.Sprintf("@%d", b.parser.builtJobs[d.job].position)
		}
		entry := d.dependencyType + ":" + id
		if d.delay != "" {
			entry += "+" + d.delay
		}
		if d.isAlternative {
			entry = "?" + entry
		}
		if !containsName(list, entry) {
			list = append(list, entry)
		}
	}
	if len(list) > 0 {
		b.ad.SetStrings(roost.AttrDependsOn, list)
	}
}
