package submit

import (
	"fmt"
	"path"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/roost-batch/roost"
	"github.com/zclconf/go-cty/cty"
)

// readStreams reads stdin, stdout, stderr and join_output.
func (b *builder) readStreams() {
	if a, ok := b.attr("stdin", b.roots()...); ok {
		if t, ok := b.text(a.Expr, "stdin"); ok && b.inputThere(t) {
			b.ad.SetString(roost.AttrIn, b.below(t).ad())
		}
	}
	out := b.readOutput("stdout", roost.AttrOut)
	err := b.readOutput("stderr", roost.AttrErr)
	join, _ := b.sameBool("join_output")
	if join && err {
		b.fail(b.body.Attributes["stderr"].NameRange, "stderr and join_output cannot both be set", "With join_output = true the standard error goes where stdout goes. Remove one of the two.")
	}
	if out && err && b.ad != nil {
		o, _ := b.ad.Str(roost.AttrOut)
		if e, _ := b.ad.Str(roost.AttrErr); e == o && e != "/dev/null" && e != "" {
			join = true // two descriptors on one file would overwrite each other
			b.ad.Delete(roost.AttrErr)
		}
	}
	b.ad.SetBool(roost.AttrJoinOutput, join)
	if keep, ok := b.sameBool("empty_output"); ok {
		b.ad.SetBool(roost.AttrKeepOutput, keep)
	}
	b.readRemoval(join)
}

// streams are what remove_output can name.
var streams = []struct{ name, letter string }{{"stdout", "o"}, {"stderr", "e"}}

// readRemoval reads which files of output go when a task has succeeded.
func (b *builder) readRemoval(joined bool) {
	const cure = "Write a list of stdout and stderr: remove_output = [\"stderr\"]."
	list, at, ok := b.choices("remove_output", cure, names(streams))
	letters := ""
	for _, s := range streams {
		if !ok || !has(list, s.name) {
			continue
		}
		if b.body.Attributes[s.name] == nil || joined && s.name == "stderr" {
			b.fail(at, "remove_output names a file that there is not", fmt.Sprintf("The job has no %s of its own. Say where it goes, or remove it from the list.", s.name))
			return
		}
		letters += s.letter
	}
	if letters != "" {
		b.ad.SetString(roost.AttrRemoveOutput, letters)
	}
}

func (b *builder) readOutput(name, attr string) bool {
	a, ok := b.attr(name, b.roots()...)
	if !ok {
		return false
	}
	t, ok := b.text(a.Expr, name)
	if !ok {
		return false
	}
	s, fixed := t.fixed()
	if fixed && s == "" {
		return false
	}
	abs := b.below(t)
	where, known := abs.fixed()
	switch {
	case fixed && strings.HasSuffix(s, "/"):
		b.fail(t.at, name+" is a directory", fmt.Sprintf("It has to be a file: %s = \"%s%s.${task.index}\".", name, s, name))
		return false
	case abs.alike() && b.tasks.count > 1 && where != "/dev/null" && !b.led():
		ext := path.Ext(s)
		if !fixed {
			s, ext = name+".${task.job}", ""
		}
		b.fail(t.at, "all tasks would write "+name+" to the same file", fmt.Sprintf("Give each task its own: %s = \"%s.${task.index}%s\".", name, strings.TrimSuffix(s, ext), ext))
		return false
	case known && b.p.opts.Files != nil && where != "/dev/null":
		if !b.parentThere(where, name, t.at) {
			return false
		}
	}
	b.ad.SetString(attr, abs.ad())
	return true
}

// led reports whether only the first task runs the program.
func (b *builder) led() bool {
	a := b.body.Attributes["led"]
	if a == nil || !b.p.check(a.Expr, nil) {
		return false
	}
	v, ok := b.p.eval(a.Expr, b.p.root)
	return ok && !v.IsNull() && v.Type() == cty.Bool && v.True()
}

func (b *builder) parentThere(where, name string, at hcl.Range) bool {
	if info, err := b.p.opts.Files.Stat(where); err == nil && info.IsDir() {
		b.fail(at, fmt.Sprintf("%s: %q is a directory", name, shorten(where)), "It has to be a file. Add a name to it.")
		return false
	}
	parent := path.Dir(where)
	if iwd, _ := b.iwd.fixed(); parent == iwd {
		return true // was checked, or is where the submitter stands
	}
	if info, err := b.p.opts.Files.Stat(parent); err != nil || !info.IsDir() {
		b.p.report(missing(&at, fmt.Sprintf("the directory of %s is not there", name), fmt.Sprintf("There is no directory %s. Make it first: mkdir -p %s.", parent, parent)))
		return false
	}
	return true
}
