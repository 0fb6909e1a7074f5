package makefile

import (
	"fmt"
	"slices"
	"strings"
)

// Recipe is a recipe that has to run.
type Recipe struct {
	Target string
	After  []string // targets of recipes that have to run before it
	// options of make that take other targets as they are, and have the recipe run
	Options []string
	target  *Target
}

// recipeFinder finds what recipes wait for.
type recipeFinder struct {
	database *Database
	owners   map[string]string // by target: the target whose recipe makes it
}

// DoubleColonError is about a target of double-colon rules that another target needs.
// Make has no option that takes such a target as it is.
type DoubleColonError struct{ Target, NeededBy string }

func (e DoubleColonError) Error() string {
	return fmt.Sprintf("%s needs %s, which has double-colon rules", e.NeededBy, e.Target)
}

// Recipes returns the recipes that have to run, in the order in which make would run
// them. Its error is a DoubleColonError.
func (d *Database) Recipes() ([]Recipe, error) {
	f := recipeFinder{database: d, owners: map[string]string{}}
	var names []string
	for _, name := range d.traced {
		t := d.Targets[name]
		if t == nil || !t.HasRecipe || !t.HasAutomatic || f.owners[name] == name {
			continue
		}
		f.owners[name] = name
		names = append(names, name)
	}
	for _, name := range names {
		for _, also := range d.Targets[name].AlsoMakes {
			if f.owners[also] == "" {
				f.owners[also] = name
			}
		}
	}
	list := make([]Recipe, 0, len(names))
	for _, name := range names {
		r := f.recipe(d.Targets[name])
		for _, other := range r.After {
			if d.Targets[other].IsDoubleColon {
				return nil, DoubleColonError{other, name}
			}
		}
		list = append(list, r)
	}
	return list, nil
}

// recipe returns the recipe of a target.
func (f *recipeFinder) recipe(t *Target) Recipe {
	r := Recipe{Target: t.Name, target: t}
	var made, intermediate []string // targets of other recipes, up to which the graph is walked
	after, seen := map[string]bool{}, map[string]bool{t.Name: true}
	stack := slices.Concat(t.Prerequisites, t.OrderOnly)
	slices.Reverse(stack)
	for len(stack) > 0 {
		name := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if seen[name] {
			continue
		}
		seen[name] = true
		p := f.database.Targets[name]
		if owner := f.owners[name]; owner != "" {
			if made = append(made, name); p != nil && p.IsIntermediate {
				intermediate = append(intermediate, name)
			}
			if owner != t.Name && !after[owner] {
				after[owner] = true
				r.After = append(r.After, owner)
			}
			continue
		}
		if p != nil {
			for _, list := range [][]string{p.OrderOnly, p.Prerequisites} {
				for i := len(list) - 1; i >= 0; i-- {
					stack = append(stack, list[i])
				}
			}
		}
	}
	r.Options = f.options(t, made, intermediate)
	return r
}

// options returns options of make: made are targets that other recipes make.
func (f *recipeFinder) options(t *Target, made, intermediate []string) (list []string) {
	isMade := map[string]bool{}
	for _, name := range made {
		isMade[name] = true
		list = append(list, "-o"+name, "-W"+name)
	}
	if len(intermediate) > 0 {
		list = append(list, "--eval=.SECONDARY: "+strings.Join(intermediate, " "))
	}
	for _, name := range t.Newer {
		if !isMade[name] && f.mayBeNew(name) {
			list = append(list, "-W"+name)
		}
	}
	if len(t.Newer) > 0 || t.IsDoubleColon { // of whose recipes perhaps only some run
		return list
	}
	// The target does not exist, or is phony: it is made whatever else there is.
	for _, name := range slices.Concat(t.Prerequisites, t.OrderOnly) {
		if !isMade[name] {
			list = append(list, "-o"+name)
		}
	}
	return append(list, "-B")
}

// Arguments returns the arguments of make that run one recipe. flags name the makefile
// and the like, and variables are those of the command line.
func (d *Database) Arguments(r *Recipe, flags, variables []string) []string {
	list := append(slices.Clone(flags), "--no-print-directory")
	for _, name := range d.Makefiles { // they are made before anything else
		list = append(list, "-o"+name)
	}
	return slices.Concat(list, r.Options, []string{"--"}, variables, []string{r.Target})
}

// mayBeNew reports whether -W is for a name. A target without a recipe and without a file
// makes what depends on it out of date at each run.
func (f *recipeFinder) mayBeNew(name string) bool {
	t := f.database.Targets[name]
	return t == nil || !t.IsTarget || t.HasRecipe
}

// Variable returns the value of a variable for the recipe. It is that of its target, or
// else of the pattern with the shortest stem, or else the global one. Targets do not
// inherit it from those that depend on them.
func (d *Database) Variable(r *Recipe, name string) (Variable, bool) {
	if v, ok := r.target.Variables[name]; ok {
		return v, true
	}
	best, found, stem := Variable{}, false, 0
	for _, p := range d.Patterns {
		v, ok := p.Variables[name]
		before, after, isPattern := strings.Cut(p.Pattern, "%")
		if !ok || !isPattern || len(r.Target) < len(before)+len(after) || !strings.HasPrefix(r.Target, before) ||
			!strings.HasSuffix(r.Target, after) {
			continue
		}
		if size := len(r.Target) - len(before) - len(after); !found || size <= stem {
			best, found, stem = v, true, size
		}
	}
	if found {
		return best, true
	}
	v, ok := d.Variables[name]
	return v, ok
}
