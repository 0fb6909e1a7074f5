package translate

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/classad"
	"github.com/roost-batch/roost/internal/lazyregexp"
)

// machineCondition is a condition on the machine: in HCL, or if HCL cannot say it as a
// ClassAd expression.
type machineCondition struct{ hcl, ad string }

// joinConditions joins conditions that must all hold.
func joinConditions(all []machineCondition) string {
	plain := true
	for _, c := range all {
		plain = plain && c.hcl != ""
	}
	parts := make([]string, len(all))
	for i, c := range all {
		if plain {
			parts[i] = c.hcl
		} else {
			parts[i] = c.classAdText()
		}
		if len(all) > 1 && strings.Contains(parts[i], "||") {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	if plain {
		return strings.Join(parts, " && ")
	}
	return quotedText(strings.Join(parts, " && "))
}

var machineName = lazyregexp.New(`machine\.([A-Za-z0-9_]+)`)

// classAdText writes a simple condition over machine as a ClassAd expression.
func (c machineCondition) classAdText() string {
	if c.ad != "" {
		return c.ad
	}
	return machineName().ReplaceAllStringFunc(c.hcl, func(m string) string {
		if name := m[len("machine."):]; name == "name" {
			return "TARGET.Name"
		}
		return "TARGET." + m[len("machine."):]
	})
}

// adString returns a text as a ClassAd literal.
func adString(s string) string { return classad.StringValue(s).String() }

func escapeRegexp(s string) string { return regexp.QuoteMeta(s) }

// parseFeatures translates a constraint of Slurm: features with & and |, and parentheses.
// A feature becomes the machine attribute of its name, which an administrator sets in the
// node file.
func parseFeatures(v string) (hcl, why string) {
	if strings.ContainsAny(v, "[]*") {
		return "", "A job cannot ask that all its machines are alike in a feature, or how many have it. Ask " +
			"for a feature: requirements = machine.skylake."
	}
	var b strings.Builder
	depth, wantName := 0, true
	for i := 0; i < len(v); {
		switch c := v[i]; {
		case c == ' ':
			i++
		case c == '(' && wantName:
			depth++
			b.WriteByte('(')
			i++
		case c == ')' && !wantName && depth > 0:
			depth--
			b.WriteByte(')')
			i++
		case (c == '&' || c == ',' || c == '|') && !wantName:
			for i < len(v) && (v[i] == c) {
				i++
			}
			b.WriteString(map[byte]string{'&': " && ", ',': " && ", '|': " || "}[c])
			wantName = true
		case wantName:
			end := i
			for end < len(v) && !strings.ContainsRune("()&|, ", rune(v[end])) {
				end++
			}
			name := v[i:end]
			negated := strings.HasPrefix(name, "!")
			attr := isFeatureName(strings.TrimPrefix(name, "!"))
			if attr == "" || end == i {
				return "", fmt.Sprintf("%q cannot be the name of an attribute of machines.", shownLine(name))
			}
			if negated {
				b.WriteByte('!')
			}
			b.WriteString("machine." + attr)
			wantName, i = false, end
		default:
			return "", "This is not understood. Conditions are written as requirements = machine.skylake && " +
				"machine.memory >= \"64GiB\"."
		}
	}
	if wantName || depth != 0 || b.Len() > 4000 {
		return "", "This is not understood. Conditions are written as requirements = machine.skylake && " +
			"machine.memory >= \"64GiB\"."
	}
	return b.String(), ""
}

func isFeatureName(s string) string {
	name := regexp.MustCompile(`[^A-Za-z0-9_]`).ReplaceAllString(s, "_")
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		name = "has_" + name
	}
	if !identifier().MatchString(name) || len(name) > 100 {
		return ""
	}
	return name
}

const featureRemark = "A feature is an attribute of the machines here, which their administrator adds in the node " +
	"file: attributes = { %s = true }; see roost-node(5)."

func (x *slurmScript) setConstraint(v string) bool {
	c, why := parseFeatures(v)
	if why != "" {
		return x.noteDirectiveLost(why)
	}
	x.require = append(x.require, machineCondition{hcl: c})
	x.noteDirectiveDifference(fmt.Sprintf(featureRemark, machineName().FindStringSubmatch(c)[1]))
	return true
}

// setHosts requires or excludes machines by name.
func (x *slurmScript) setHosts(v, operator string) bool {
	names, ok := parseHostList(v)
	if !ok || len(names) == 0 {
		return x.noteDirectiveLost("These names are not understood. A condition is written as requirements " +
			"= machine.name != \"n17\".")
	}
	if operator == "==" && len(names) > 1 {
		x.noteDirectiveDifference("Slurm gives the job all of these machines; here it may run on any of them.")
	}
	parts := make([]string, len(names))
	for i, n := range names {
		parts[i] = "machine.name " + operator + " " + quotedText(n)
	}
	c := strings.Join(parts, map[string]string{"==": " || ", "!=": " && "}[operator])
	x.require = append(x.require, machineCondition{hcl: c})
	return true
}

// maxHosts bounds the names of a host list.
const maxHosts = 64

var hostName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// parseHostList parses a host list such as "n1,n[3-5,8],gpu[01-04]".
func parseHostList(v string) (names []string, ok bool) {
	for v != "" {
		end, depth := 0, 0
		for end < len(v) && (v[end] != ',' || depth > 0) {
			switch v[end] {
			case '[':
				depth++
			case ']':
				depth--
			}
			end++
		}
		part := v[:end]
		v = strings.TrimPrefix(v[end:], ",")
		before, inside, bracketed := strings.Cut(part, "[")
		inside, after, closed := strings.Cut(inside, "]")
		if !bracketed {
			names = append(names, part)
		} else if !closed || strings.Contains(after, "[") {
			return nil, false
		}
		for _, span := range strings.Split(inside, ",") {
			if !bracketed {
				break
			}
			low, high, ranged := strings.Cut(span, "-")
			if !ranged {
				high = low
			}
			first, err1 := strconv.ParseUint(low, 10, 24)
			last, err2 := strconv.ParseUint(high, 10, 24)
			if err1 != nil || err2 != nil || last < first || last-first >= maxHosts {
				return nil, false
			}
			for n := first; n <= last; n++ {
				names = append(names, fmt.Sprintf("%s%0*d%s", before, len(low), n, after))
			}
		}
		if len(names) > maxHosts {
			return nil, false
		}
	}
	for _, n := range names {
		if !hostName().MatchString(n) || len(n) > 200 {
			return nil, false
		}
	}
	return names, true
}

// dependTypes are the types of dependencies of job files, some of which Slurm has, too.
var dependTypes = strings.Fields("after afterok afternotok afterany before beforeok beforenotok beforeany runone " +
	"syncwith aftercorr afterready afterstartarray afterokarray afternotokarray afteranyarray")

// parseDependsOn returns advice for a dependency, whose ids are those of the other
// system.
func parseDependsOn(v, separators string) string {
	mark := ""
	if strings.Contains(separators, "?") && strings.Contains(v, "?") {
		mark = "?"
	}
	var parts, other []string
	for _, part := range strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		kind, ids, _ := strings.Cut(strings.TrimSpace(part), ":")
		switch _, minutes, isDelayed := strings.Cut(ids, "+"); {
		case kind == "afterok" && mark == "":
			parts = append(parts, `"ID"`)
		case kind == "after" && isDelayed:
			parts = append(parts, `"`+mark+`after:ID+`+shownLine(minutes)+`m"`)
		case slices.Contains(dependTypes, kind):
			parts = append(parts, `"`+mark+kind+`:ID"`)
		default:
			other = append(other, kind)
		}
	}
	why := "The ids are those of the other system. "
	if len(parts) > 0 {
		why += "With the id of the job here write depends_on = [" + strings.Join(parts, ", ") +
			"]; a job of the same file is job.NAME, or { id = job.NAME, when = \"afterany\" }."
	}
	for _, kind := range other {
		switch kind {
		case "singleton":
			why += " singleton: let each depend on the one before, or take a limit of one for all of them: limits " +
				"= [\"NAME\"]."
		default:
			why += fmt.Sprintf(" There is no %q: let the later job depend on this one with afterok, afternotok, "+
				"afterany or after.", shownLine(kind))
		}
	}
	return strings.TrimSpace(why)
}
