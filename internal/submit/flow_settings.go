package submit

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/roost-batch/roost/internal/lazyregexp"
)

// flowVariable is a variable of nodes.
type flowVariable struct {
	name, value string
	isAppended  bool
	at          hcl.Range
}

// value returns the value of a setting of the node; null counts as unset.
func (r nodeReader) value(name string) (v cty.Value, at hcl.Range, ok bool) {
	a := r.body.Attributes[name]
	if a == nil {
		return cty.DynamicVal, hcl.Range{}, false
	}
	return r.valueOf(a.Expr)
}

func (r nodeReader) valueOf(e hclsyntax.Expression, more ...string) (v cty.Value, at hcl.Range, ok bool) {
	roots := more
	if r.node != nil && r.node.repeated {
		roots = append(roots, "each")
	}
	if !r.parser.checkNames(e, roots) {
		return cty.DynamicVal, e.Range(), false
	}
	v, ok = r.parser.evaluate(e, r.scope)
	return v, e.Range(), ok && !v.IsNull()
}

// text returns a setting that is a text of one line.
func (r nodeReader) text(name string) (string, bool) {
	v, at, ok := r.value(name)
	if !ok {
		return "", false
	}
	return r.lineText(v, at, name)
}

// lineText returns a value as a text of one line.
func (r nodeReader) lineText(v cty.Value, at hcl.Range, name string) (string, bool) {
	text := ""
	switch {
	case v.IsNull():
	case v.Type() == cty.String:
		text = v.AsString()
	case v.Type() == cty.Number:
		text = numberText(v)
	case v.Type() == cty.Bool:
		text = strconv.FormatBool(v.True())
	default:
		r.reportProblem(at, name+" has to be a text", fmt.Sprintf("It is %s.", describeValue(v)))
		return "", false
	}
	if strings.ContainsAny(text, "\n\r\x00") {
		r.reportProblem(at, name+" has more than one line", "What a flow stores of a node is a text of one line. Put "+
			"longer texts into files.")
		return "", false
	}
	return text, true
}

func (r nodeReader) boolean(name string) (value, ok bool) {
	v, at, ok := r.value(name)
	if ok && v.Type() != cty.Bool {
		r.reportProblem(at, name+" has to be true or false",
			fmt.Sprintf("It is %s. Write true or false, not in quotes.", describeValue(v)))
		return false, false
	}
	return ok && v.True(), ok
}

func (r nodeReader) integer(name string, least, most int64, hint string) (string, bool) {
	v, at, ok := r.value(name)
	if !ok {
		return "", false
	}
	n, ok := r.checkInteger(v, at, name, least, most, hint)
	return strconv.FormatInt(n, 10), ok
}

// command writes a command that is about the node.
func (r nodeReader) command(setting string, words ...string) {
	at := r.block.DefRange()
	if a := r.body.Attributes[setting]; a != nil {
		at = a.SrcRange
	}
	r.flow.emit(at, words...)
}

// readRules reads what follows from how the node ends, and when it begins.
func (r nodeReader) readRules() {
	const codeHint = "Write an exit code; a signal is its negative number."
	code := func(name string, least, most int64) (string, bool) { return r.integer(name, least, most, codeHint) }
	count, hasRetry := r.integer("retry", 0, math.MaxUint16, "It is how often the node is tried again.")
	unless, hasUnless := code("unless_exit", math.MinInt32, math.MaxInt32)
	switch {
	case hasRetry && hasUnless:
		r.command("retry", "RETRY", r.word, count, "UNLESS-EXIT", unless)
	case hasRetry:
		r.command("retry", "RETRY", r.word, count)
	case hasUnless:
		r.reportProblem(r.body.Attributes["unless_exit"].NameRange, "unless_exit is for retry",
			"It names the code after which the node is not tried again. Set retry, too.")
	}
	abort, hasAbort := code("abort_on", math.MinInt32, math.MaxInt32)
	result, hasResult := code("abort_return", 0, math.MaxUint8)
	switch {
	case hasAbort && hasResult:
		r.command("abort_on", "ABORT-DAG-ON", r.word, abort, "RETURN", result)
	case hasAbort:
		r.command("abort_on", "ABORT-DAG-ON", r.word, abort)
	case hasResult:
		r.reportProblem(r.body.Attributes["abort_return"].NameRange, "abort_return is for abort_on",
			"It is the exit code of a flow that a code of the node aborts. Set abort_on, too.")
	}
	if skip, ok := code("pre_skip", math.MinInt32, math.MaxInt32); ok {
		r.command("pre_skip", "PRE_SKIP", r.word, skip)
	}
	r.readTolerance()
	if n, ok := r.integer("priority", math.MinInt32, math.MaxInt32, "A higher one begins first."); ok {
		r.command("priority", "PRIORITY", r.word, n)
	}
	if name, ok := r.text("category"); ok {
		r.command("category", "CATEGORY", r.word, dagWord(name))
	}
	for _, name := range []string{"pin_in", "pin_out"} {
		if n, ok := r.integer(name, 1, 1<<20, "Pins are numbered from 1."); ok {
			r.command(name, strings.ToUpper(name), r.word, n)
		}
	}
	if name, ok := r.text("save_point"); ok {
		r.command("save_point", "SAVE_POINT_FILE", r.word, dagWord(name))
	}
}

var sharePattern = lazyregexp.New(`^[0-9]{1,3}%$`)

// readTolerance reads how many tasks may fail: a number, or a share as "10%".
func (r nodeReader) readTolerance() {
	v, at, ok := r.value("tolerance")
	fast, hasFast := r.boolean("fail_fast")
	if !ok {
		if hasFast {
			r.reportProblem(r.body.Attributes["fail_fast"].NameRange, "fail_fast is for tolerance",
				"It removes the other tasks once more have failed than tolerance says. Set tolerance, as in 0.")
		}
		return
	}
	text := ""
	if v.Type() == cty.String && sharePattern().MatchString(v.AsString()) {
		text = v.AsString()
	} else {
		n, ok := r.checkInteger(v, at, "tolerance", 0, math.MaxInt32, "Write how many tasks may fail, or \"10%\" of "+
			"them.")
		if !ok {
			return
		}
		text = strconv.FormatInt(n, 10)
	}
	words := []string{"TOLERANCE", r.word, text}
	if hasFast {
		words = append(words, map[bool]string{true: "FAIL-FAST", false: "WAIT"}[fast])
	}
	r.command("tolerance", words...)
}

var variablePattern = lazyregexp.New(`^(\+|[Mm][Yy]\.)?[A-Za-z_][A-Za-z0-9_]*$`)

var plainVariable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// isVariableName reports whether a variable of nodes can be one of a job file. Others are
// attributes of the job.
func isVariableName(name string) bool { return plainVariable().MatchString(name) }

// ownVariables reads vars and append_vars.
func (r nodeReader) ownVariables() (list []flowVariable) {
	for _, setting := range []string{"vars", "append_vars"} {
		v, at, ok := r.value(setting)
		if !ok {
			continue
		}
		if ty := v.Type(); !ty.IsMapType() && !ty.IsObjectType() {
			r.reportProblem(at, setting+" is not a map", fmt.Sprintf("It is %s. Write names and values: %s = { color "+
				"= \"red\", n = 3 }.", describeValue(v), setting))
			continue
		}
		for it := v.ElementIterator(); it.Next(); {
			key, value := it.Element()
			name := key.AsString()
			if !variablePattern().MatchString(name) || strings.HasPrefix(strings.ToLower(name), "queue") {
				r.reportProblem(at, fmt.Sprintf("a variable cannot be called %q", truncateText(name)), "A name has "+
					"letters, digits and _, and does not begin with queue. One like \"My.Project\" is an attribute of "+
					"the job.")
				continue
			}
			if text, ok := r.lineText(value, at, name); ok {
				list = append(list, flowVariable{name, text, setting == "append_vars", at})
			}
		}
	}
	return list
}

// variables are those of the node, with the defaults that it does not set itself.
func (r nodeReader) variables() []flowVariable {
	if r.block.Type == "splice" {
		return nil
	}
	list := r.ownVariables()
	if r.block.Type == "final" || r.block.Type == "service" {
		return list
	}
	for _, d := range r.flow.defaults {
		if !slices.ContainsFunc(list, func(v flowVariable) bool { return strings.EqualFold(v.name, d.name) }) {
			list = append(list, d)
		}
	}
	return list
}

// variableNames are the names of the variables that a job file can have, sorted.
func (r nodeReader) variableNames() (names []string) {
	for _, v := range r.variables() {
		if isVariableName(v.name) {
			names = append(names, v.name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// readVariables writes the variables of the node.
func (r nodeReader) readVariables() {
	for _, v := range r.variables() {
		words := []string{"VARS", r.word}
		if v.isAppended {
			words = append(words, "APPEND")
		}
		value := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(v.value)
		r.flow.emit(v.at, append(words, v.name+`="`+value+`"`)...)
	}
}

// readDefaults reads what holds for all nodes that do not say otherwise.
func (f *flowReader) readDefaults(b *hclsyntax.Block) {
	settings := slices.Concat(ruleSettings, partSettings)
	if !f.parser.refuseUnknown(b, "defaults", settings, nodeInnerBlocks[1:]) ||
		!f.parser.refuseLabels(b, "defaults { … }") {
		return
	}
	r := nodeReader{jobBuilder: newBuilder(f.parser, b, "defaults"), flow: f, scope: f.parser.root, word: "ALL_NODES"}
	r.readRules()
	r.readScripts()
	f.defaults = r.ownVariables()
}
