package pbs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/roost-batch/roost/internal/cli/admin"
	"github.com/roost-batch/roost/internal/pbs/qmgr"
	"github.com/roost-batch/roost/internal/pbs/qsub"
	"github.com/roost-batch/roost/internal/wire/scheddapi"
	"github.com/roost-batch/roost/negotiator/ledger"
)

// resources reads what resources administrators have made, by name. What is counted for
// the pool is one, though nobody has said so.
func (s *qmgrSession) resources() (all []ledger.CustomResource, err error) {
	var entries []admin.AttributedObject[ledger.CustomResource]
	if err := admin.CellObjects(s.Invocation, string(ledger.KindResource), &entries); err != nil {
		return nil, err
	}
	for _, e := range entries {
		all = append(all, e.Object)
	}
	var limits []admin.AttributedObject[ledger.ConcurrencyLimit]
	if err := admin.CellObjects(s.Invocation, string(ledger.KindLimit), &limits); err != nil {
		return nil, err
	}
	for _, l := range limits {
		if !slices.ContainsFunc(all, func(r ledger.CustomResource) bool {
			return strings.EqualFold(r.Name, l.Object.Name)
		}) {
			all = append(all, ledger.CustomResource{Name: l.Object.Name, Type: "long", Flag: "q"})
		}
	}
	slices.SortFunc(all, func(a, b ledger.CustomResource) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// customResources names the resources that the pool counts, and those that are attributes
// of machines. words tells of the latter whether they are boolean.
func (s *qmgrSession) customResources() (counted []string, words map[string]bool, err error) {
	all, err := s.resources()
	words = map[string]bool{}
	for _, r := range all {
		if r.IsCounted() {
			counted = append(counted, r.Name)
		} else {
			words[r.Name] = r.Type == "boolean"
		}
	}
	return counted, words, err
}

// onResources does a command to each resource that it names.
func (s *qmgrSession) onResources(cmd qmgr.Command) error {
	all, err := s.resources()
	if err != nil {
		return err
	}
	names := cmd.Names
	if len(names) == 0 {
		names = s.active[qmgr.Resource]
	}
	if len(names) == 0 && (cmd.Verb == qmgr.List || cmd.Verb == qmgr.Print) {
		for _, r := range all {
			names = append(names, r.Name)
		}
	} else if len(names) == 0 {
		line := string(cmd.Verb) + " resource"
		return &qmgr.SyntaxError{Reason: "qmgr: Syntax error - no object name", Line: line, At: len(line)}
	}
	var last error
	for _, name := range names {
		if err := s.onResource(cmd, name, all); err != nil {
			if last != nil {
				s.printQmgrError(last)
			}
			last = &objectError{name, err}
		}
	}
	return last
}

func (s *qmgrSession) onResource(cmd qmgr.Command, name string, all []ledger.CustomResource) error {
	at := slices.IndexFunc(all, func(r ledger.CustomResource) bool { return r.Name == name })
	switch {
	case cmd.Verb == qmgr.Create && (at >= 0 || qsub.IsBuiltinResource(name)):
		return &qmgrError{pbseDuplicate, "Duplicate entry in list: there is a resource of that name"}
	case cmd.Verb == qmgr.Create:
		return s.changeResource(ledger.CustomResource{Name: name}, cmd.Changes)
	case at < 0 && qsub.IsBuiltinResource(name):
		return &qmgrError{15003,
			"Cannot set attribute, read only or insufficient permission: Roost itself says what it is"}
	case at < 0:
		return &qmgrError{15035, "Unknown resource"}
	}
	switch r := all[at]; cmd.Verb {
	case qmgr.Set, qmgr.Unset:
		return s.changeResource(r, cmd.Changes)
	case qmgr.Delete:
		return s.deleteResource(name)
	case qmgr.Print:
		fmt.Fprint(s.Stdout, printResource(&r, cmd.Changes))
	default:
		fmt.Fprint(s.Stdout, qmgr.ListObject("Resource "+name, resourceValues(&r), cmd.Changes))
	}
	return nil
}

func resourceValues(r *ledger.CustomResource) []qmgr.AttributeValue {
	all := []qmgr.AttributeValue{{Name: "type", Text: r.Type}}
	if r.Flag != "" {
		all = append(all, qmgr.AttributeValue{Name: "flag", Text: r.Flag})
	}
	return all
}

// changeResource makes changes to a resource. Without a type it is a string, as in PBS.
func (s *qmgrSession) changeResource(r ledger.CustomResource, changes []qmgr.AttributeChange) error {
	for _, c := range changes {
		into := map[string]*string{"type": &r.Type, "flag": &r.Flag}[c.Name]
		switch {
		case into == nil || c.Resource != "":
			return &qmgrError{15002, "Undefined attribute: " + c.Attribute()}
		case c.Op == "+=":
			*into += c.Value
		case c.Op == "-=":
			*into = strings.Map(func(f rune) rune {
				if strings.ContainsRune(c.Value, f) {
					return -1
				}
				return f
			}, *into)
		default:
			*into = c.Value
		}
	}
	if r.Type == "" {
		r.Type = "string"
	}
	_, err := s.AskCell(&scheddapi.CellRequest{Verb: string(ledger.VerbSet), Kind: string(ledger.KindResource),
		Object: admin.ObjectPatch{"name": r.Name, "type": r.Type, "flag": r.Flag}.JSONText()})
	return err
}

// deleteResource takes a resource away of which the server has none.
func (s *qmgrSession) deleteResource(name string) error {
	o, err := s.pool()
	if err != nil {
		return err
	}
	if slices.ContainsFunc(o.Available, func(v qmgr.AttributeValue) bool {
		return v.Resource == strings.ToLower(name)
	}) {
		return &qmgrError{pbseResourceBusy, "Resource busy on server"}
	}
	return admin.RemoveObject(s.Invocation, ledger.VerbRemove, ledger.KindResource, name)
}

// printResource writes the commands that make a resource.
func printResource(r *ledger.CustomResource, only []qmgr.AttributeChange) string {
	text := qmgr.SectionHeading("Create and define resource " + r.Name)
	if len(only) == 0 {
		text += "create resource " + r.Name + "\n"
	}
	return text + qmgr.PrintCommands(qmgr.Resource, r.Name, resourceValues(r), only)
}

// printResources writes the commands that make all resources.
func (s *qmgrSession) printResources() error {
	all, err := s.resources()
	if err != nil || len(all) == 0 {
		return err
	}
	fmt.Fprint(s.Stdout, qmgr.SectionHeading("Create resources and set their properties."))
	for _, r := range all {
		fmt.Fprint(s.Stdout, printResource(&r, nil))
	}
	return nil
}

// checkCountable refuses to count for the pool what is a resource of another kind, or
// none.
func (s *qmgrSession) checkCountable(available []qmgr.AttributeValue) error {
	all, err := s.resources()
	if err != nil {
		return err
	}
	for _, v := range available {
		at := slices.IndexFunc(all, func(r ledger.CustomResource) bool { return strings.EqualFold(r.Name, v.Resource) })
		switch {
		case at < 0:
			return &qmgrError{15035, fmt.Sprintf("Unknown resource: %s: create resource %s type=long makes one that "+
				"is counted for the pool", v.Resource, v.Resource)}
		case !all[at].IsCounted():
			return &qmgrError{15003, fmt.Sprintf("Cannot set attribute, read only or insufficient permission: %s is "+
				"an attribute of machines, which their node files say", v.Resource)}
		}
	}
	return nil
}

// setCountedResources has so much of each resource be counted for the pool as is to be
// available.
func (s *qmgrSession) setCountedResources(before, after []qmgr.AttributeValue) error {
	for _, v := range after {
		if slices.Contains(before, v) {
			continue
		}
		n, err := strconv.ParseInt(v.Text, 10, 64)
		if err == nil {
			err = s.setObject(ledger.KindLimit, map[string]any{"name": strings.ToLower(v.Resource), "count": n})
		}
		if err != nil {
			return err
		}
	}
	for _, v := range before {
		if !slices.ContainsFunc(after, func(o qmgr.AttributeValue) bool { return o.Resource == v.Resource }) {
			if err := admin.RemoveObject(s.Invocation, ledger.VerbRemove, ledger.KindLimit, v.Resource); err != nil {
				return err
			}
		}
	}
	return nil
}
