package makefile

import "strings"

// entryReader reads the entries of files, which empty lines separate.
type entryReader struct {
	database *Database
	lines    []string
}

// next goes to the next entry.
func (r *entryReader) next() bool {
	for len(r.lines) > 0 && r.lines[0] == "" {
		r.lines = r.lines[1:]
	}
	return len(r.lines) > 0 && r.lines[0] != filesEnd
}

// line returns the next line of the entry; false at its end.
func (r *entryReader) line() (string, bool) {
	if len(r.lines) == 0 || r.lines[0] == "" {
		return "", false
	}
	l := r.lines[0]
	r.lines = r.lines[1:]
	return l, true
}

// readEntry reads one entry: its variables, the rule, comments and the recipe.
func (r *entryReader) readEntry() {
	one := &Target{IsTarget: true, Variables: map[string]Variable{}}
	hasRule, origin := false, false
	for {
		l, ok := r.line()
		switch {
		case !ok:
			if hasRule {
				r.database.add(one)
			}
			return
		case l == "# Not a target:":
			one.IsTarget = false
		case isOrigin(l):
			origin = true
		case origin && hasRule:
			one.readAutomatic(l)
			origin = false
		case origin:
			one.readVariable(l)
			origin = false
		case strings.HasPrefix(l, "#"):
			if one.readComment(l) {
				one.HasRecipe = true
				r.skipRecipe()
			}
		case !hasRule:
			hasRule = true
			one.readRule(l)
		}
	}
}

// skipRecipe reads over the recipe. A line that ends in a backslash goes on in the next
// one, whatever that looks like.
func (r *entryReader) skipRecipe() {
	for continued := false; len(r.lines) > 0 && (continued || r.lines[0] != ""); r.lines = r.lines[1:] {
		l := r.lines[0]
		continued = (len(l)-len(strings.TrimRight(l, `\`)))%2 == 1
	}
}

// readVariable reads a variable of the target: "TARGET: NAME = VALUE".
func (t *Target) readVariable(l string) {
	for at := 0; ; {
		i := strings.Index(l[at:], ": ")
		if i < 0 {
			return
		}
		at += i + 2
		if name, v, ok := assignment(l[at:]); ok {
			t.Variables[name] = v
			return
		}
	}
}

// readAutomatic reads an automatic variable, as in "# ? := a b".
func (t *Target) readAutomatic(l string) {
	name, v, ok := assignment(strings.TrimPrefix(l, "# "))
	if !ok {
		return
	}
	t.HasAutomatic = true
	if name == "?" {
		t.Newer = strings.Fields(v.Value)
	}
}

// readComment reads what make says of the target. It returns true if the recipe follows.
func (t *Target) readComment(l string) (recipe bool) {
	comment := strings.TrimPrefix(l, "#  ")
	switch also, ok := strings.CutPrefix(comment, "Also makes: "); {
	case ok:
		t.AlsoMakes = strings.Fields(also)
	case strings.HasPrefix(comment, "File is an intermediate prerequisite"):
		t.IsIntermediate = true
	case strings.HasPrefix(comment, "recipe to execute"), strings.HasPrefix(comment, "commands to execute"):
		return true
	}
	return false
}

// readRule reads "TARGET: PREREQUISITE… | ORDER-ONLY…".
func (t *Target) readRule(l string) {
	end := -1
	for i := 0; i < len(l) && end < 0; i++ {
		if rest := l[i:]; rest[0] == ':' && i > 0 {
			if after := strings.TrimLeft(rest, ":"); len(rest)-len(after) <= 2 && (after == "" || after[0] == ' ') {
				end = i
			}
		}
	}
	if end < 0 {
		t.Name = l
		return
	}
	t.Name, t.IsDoubleColon = l[:end], strings.HasPrefix(l[end:], "::")
	to := &t.Prerequisites
	for _, word := range strings.Fields(strings.TrimLeft(l[end:], ":")) {
		if word == "|" {
			to = &t.OrderOnly
			continue
		}
		*to = append(*to, word)
	}
}

// add records a target. Of a double-colon rule each recipe has an entry, and all of them
// run for the target.
func (d *Database) add(t *Target) {
	old := d.Targets[t.Name]
	if old == nil {
		d.Targets[t.Name] = t
		return
	}
	old.Prerequisites = append(old.Prerequisites, t.Prerequisites...)
	old.OrderOnly = append(old.OrderOnly, t.OrderOnly...)
	old.Newer = append(old.Newer, t.Newer...)
	old.IsTarget = old.IsTarget || t.IsTarget
	old.HasRecipe = old.HasRecipe || t.HasRecipe
	old.HasAutomatic = old.HasAutomatic || t.HasAutomatic
	old.IsIntermediate = old.IsIntermediate || t.IsIntermediate
	for name, v := range t.Variables {
		old.Variables[name] = v
	}
}
