package translate

import (
	"strconv"
	"strings"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// condorVersion is the version of HTCondor that conditions see.
var condorVersion = [3]int{25, 0, 0}

var versionTest = lazyregexp.New(`^(?i:version)[ \t]*(==|!=|<=|>=|<|>|=)?[ \t]*([0-9]+)\.([0-9]+)(?:\.([0-9]+))?$`)

// evaluateCondition evaluates the condition of an if or elif. HTCondor knows booleans,
// numbers, defined and version; any other ClassAd expression is evaluated here, too.
func (f *condorSubmitFile) evaluateCondition(at submitSetting, text string) bool {
	text = strings.TrimSpace(text)
	negated := false
	for strings.HasPrefix(text, "!") {
		negated, text = !negated, strings.TrimSpace(text[1:])
	}
	holds, ok := f.simpleCondition(at, text)
	if !ok {
		f.noteMistake(at.line, at.source, "This is no condition. There are true and false, numbers, defined NAME and "+
			"version >= 8.1.6, each with or without a ! in front.")
		return false
	}
	return holds != negated
}

func (f *condorSubmitFile) simpleCondition(at submitSetting, text string) (holds, ok bool) {
	if word, name, _ := strings.Cut(text, " "); strings.EqualFold(word, "defined") {
		name = strings.TrimSpace(f.expandForReader(at, name))
		key := strings.ToLower(name)
		_, isSet := f.set[key]
		if isSet {
			f.usedAsMacro[key] = true
		} else if _, err := strconv.ParseFloat(name, 64); err == nil {
			isSet = true
		}
		return isSet, true
	}
	text = strings.TrimSpace(f.expandForReader(at, text))
	if m := versionTest().FindStringSubmatch(text); m != nil {
		return compareVersion(m[1], m[2:]), true
	}
	switch strings.ToLower(text) {
	case "true", "yes", "t", "y":
		return true, true
	case "false", "no", "f", "n":
		return false, true
	case "":
		return false, false
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil {
		return n != 0, true
	}
	e, err := classad.ParseExpr(text)
	if err != nil {
		return false, false
	}
	return classad.Eval(e, classad.New(), nil, nil).Truth()
}

// compareVersion compares the version with the numbers of a condition.
func compareVersion(operator string, numbers []string) bool {
	order := 0
	for i, text := range numbers {
		n, err := strconv.Atoi(text)
		if err != nil || order != 0 {
			continue // no third number: any
		}
		order = condorVersion[i] - n
	}
	switch operator {
	case "!=":
		return order != 0
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	case ">=":
		return order >= 0
	}
	return order == 0
}
